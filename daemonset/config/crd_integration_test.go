package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{"crd/daemonsets.yaml"}})
}

// given is the DaemonSet in the YAML in a namespace of its own, called web unless it says otherwise.
func given(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{Object: testenv.Fields(t, text)}
	set.SetAPIVersion("apps.kruise.io/v1beta1")
	set.SetKind("DaemonSet")
	if set.GetName() == "" {
		set.SetName("web")
	}
	set.SetNamespace(env.Namespace(t))
	return set
}

func create(t *testing.T, set *unstructured.Unstructured) error {
	t.Helper()
	return env.Client(t).Create(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict))
}

const frame = `
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
`

func TestTemplatesAreStoredAsTheyWereSent(t *testing.T) {
	for name, spec := range map[string]string{
		"cpu as a fraction":                   "{containers: [{name: main, image: nginx, resources: {requests: {cpu: 0.5}}}]}",
		"the same environment variable twice": "{containers: [{name: main, image: nginx, env: [{name: A, value: a}, {name: A, value: b}]}]}",
		"the same port twice":                 "{containers: [{name: main, image: nginx, ports: [{containerPort: 80}, {containerPort: 80}]}]}",
		"no pull policy":                      "{hostNetwork: true, containers: [{name: main, image: nginx}]}",
	} {
		t.Run(name, func(t *testing.T) {
			set := given(t, frame+"    spec: "+spec)
			want := set.DeepCopy().Object["spec"].(map[string]any)
			require.NoError(t, create(t, set))
			assert.Equal(t, want["template"], set.Object["spec"].(map[string]any)["template"])
		})
	}
}

func TestEveryFieldOfTheStrategyIsKept(t *testing.T) {
	set := given(t, frame+`
  minReadySeconds: 600
  burstReplicas: 10%
  revisionHistoryLimit: 0
  lifecycle: {preDelete: {labelsHandler: {hold: "true"}, finalizersHandler: [a/b], markPodNotReady: true}}
  scaleStrategy: {partitionedScaling: true}
  updateStrategy:
    type: RollingUpdate
    rollingUpdate:
      rollingUpdateType: InPlaceIfPossible
      maxUnavailable: 25%
      maxSurge: 0
      selector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}
      partition: 50%
      paused: false
      unreadyNodePolicy: Skip
      unselectedNodePolicy: Revert
`)
	want := set.DeepCopy()
	require.NoError(t, create(t, set))
	assert.Equal(t, want.Object["spec"], set.Object["spec"])
}

func TestManifestsOfTheBuiltInKindAreAccepted(t *testing.T) {
	set := given(t, frame+"  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}")
	require.NoError(t, create(t, set))
	set.Object["status"] = map[string]any{"numberReady": int64(3)}
	assert.NoError(t, env.Client(t).Status().Update(t.Context(), set), "no counter is required")
}

func TestFieldsThatStandByThemselvesHaveDefaults(t *testing.T) {
	set := given(t, frame)
	require.NoError(t, create(t, set))
	spec := set.Object["spec"].(map[string]any)
	assert.Equal(t, int64(10), spec["revisionHistoryLimit"])
	assert.Equal(t, int64(250), spec["burstReplicas"])
}

func TestTheSchemaRefusesWithTheWordsOfTheWebhook(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no selector":        {"spec: {template: {}}", "spec.selector: Required value"},
		"no template":        {"spec: {selector: {}}", "spec.template: Required value"},
		"a misspelt field":   {frame + "  updateStrategy: {partition: 1}", `unknown field "spec.updateStrategy.partition"`},
		"negative readiness": {frame + "  minReadySeconds: -1", "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
		"negative history":   {frame + "  revisionHistoryLimit: -1", "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, create(t, given(t, c.text)), c.want)
		})
	}
}

func TestColumns(t *testing.T) {
	set := given(t, frame+"    spec: {containers: [{name: main, image: nginx:1}]}\n")
	require.NoError(t, create(t, set))
	set.Object["status"] = map[string]any{
		"desiredNumberScheduled": int64(5), "currentNumberScheduled": int64(4), "numberReady": int64(3),
		"updatedNumberScheduled": int64(2), "numberAvailable": int64(1),
	}
	require.NoError(t, unstructured.SetNestedField(set.Object, "web-1", "status", "updateRevision"))
	require.NoError(t, unstructured.SetNestedSlice(set.Object, []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "Progressing", "message": "2 of 3 pods are ready", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}, "status", "conditions"))
	require.NoError(t, env.Client(t).Status().Update(t.Context(), set))

	names, rows := env.Table(t, schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "daemonsets"}, set.GetNamespace())
	assert.Equal(t, []string{"Name", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "CONTAINERS", "IMAGES", "REVISION", "REASON", "MESSAGE"}, names)
	require.Len(t, rows, 1)
	assert.Equal(t, []any{"web", int64(5), int64(4), int64(3), int64(2), int64(1)}, rows[0][:6])
	assert.Equal(t, []any{"main", "nginx:1", "web-1", "Progressing", "2 of 3 pods are ready"}, rows[0][7:])
}

func TestCountersAreShownAtZero(t *testing.T) {
	env.Need(t)
	testenv.CountAtZero(t, env.Client(t), given(t, frame), "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
		"numberReady", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "numberUnreadyNodes", "numberSkippedNodes")
}
