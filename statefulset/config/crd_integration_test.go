package config_test

import (
	"os"
	"strings"
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
	env.Run(m, testenv.Options{CRDs: []string{"crd/statefulsets.yaml"}})
}

// given is the StatefulSet in the YAML in a namespace of its own, called web unless it says otherwise.
func given(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{Object: testenv.Fields(t, text)}
	set.SetAPIVersion("apps.kruise.io/v1beta1")
	set.SetKind("StatefulSet")
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

func TestTemplatesAreAsFreeAsThoseOfTheBuiltInKind(t *testing.T) {
	cases := []struct{ name, text string }{
		{"cpu as a fraction", frame + "    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 0.5}}}]}"},
		{"the same environment variable twice", frame + "    spec: {containers: [{name: main, image: nginx, env: [{name: A, value: a}, {name: A, value: b}]}]}"},
		{"the same port twice", frame + "    spec: {containers: [{name: main, image: nginx, ports: [{containerPort: 80}, {containerPort: 80}]}]}"},
		{"claim template with a status", frame + "    spec: {containers: [{name: main, image: nginx}]}\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1}}}, status: {phase: Pending}}]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := given(t, c.text)
			want := set.DeepCopy().Object["spec"].(map[string]any)
			require.NoError(t, create(t, set))
			got := set.Object["spec"].(map[string]any)
			assert.Equal(t, want["template"], got["template"], "the template is stored as it was sent")
			assert.Equal(t, want["volumeClaimTemplates"], got["volumeClaimTemplates"])
		})
	}
}

func TestStoredStatefulSetsAreAccepted(t *testing.T) {
	env.Need(t)
	file, err := os.ReadFile("crd/testdata/stored.yaml")
	require.NoError(t, err)
	for document := range strings.SplitSeq(string(file), "\n---\n") {
		set := given(t, document)
		unstructured.RemoveNestedField(set.Object, "spec", "template", "metadata", "creationTimestamp") // null, which no server keeps
		want := set.DeepCopy()
		require.NoError(t, create(t, set), set.GetName())
		assert.Equal(t, want.Object["spec"], set.Object["spec"], set.GetName())
		set.Object["status"] = want.Object["status"]
		require.NoError(t, env.Client(t).Status().Update(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict)), set.GetName())
		assert.Subset(t, set.Object["status"], want.Object["status"], set.GetName())
	}
}

func TestManifestsOfTheBuiltInKindAreAccepted(t *testing.T) {
	set := given(t, frame+`
  minReadySeconds: 600
status: {replicas: 3, availableReplicas: 3}
`)
	require.NoError(t, create(t, set))
	seconds, _, err := unstructured.NestedInt64(set.Object, "spec", "minReadySeconds")
	require.NoError(t, err)
	assert.Equal(t, int64(600), seconds)

	set.Object["status"] = map[string]any{"replicas": int64(3)}
	assert.NoError(t, env.Client(t).Status().Update(t.Context(), set), "no counter is required")
}

func TestFieldsThatStandByThemselvesHaveDefaults(t *testing.T) {
	set := given(t, frame)
	require.NoError(t, create(t, set))
	spec := set.Object["spec"].(map[string]any)
	assert.Equal(t, int64(1), spec["replicas"])
	assert.Equal(t, int64(10), spec["revisionHistoryLimit"])
	assert.Equal(t, "OrderedReady", spec["podManagementPolicy"])
}

func TestTheSchemaRefusesWithTheWordsOfTheWebhook(t *testing.T) {
	rolling := "spec.updateStrategy.rollingUpdate."
	cases := []struct{ name, text, want string }{
		{"no selector", "spec: {template: {}}", "spec.selector: Required value"},
		{"a misspelt field", frame + "  updateStrategy: {partition: 1}", `unknown field "spec.updateStrategy.partition"`},
		{"negative replicas", frame + "  replicas: -1", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"unknown policy", frame + "  podManagementPolicy: Serial", `spec.podManagementPolicy: Invalid value: "Serial": must be 'OrderedReady' or 'Parallel'`},
		{"unknown strategy", frame + "  updateStrategy: {type: Recreate}", "must be 'RollingUpdate' or 'OnDelete'"},
		{"a strategy of the built-in kind", frame + "  updateStrategy: {type: Recreate}", "Recreate is for built-in StatefulSets only: scale to 0, change the template, and scale up"},
		{"negative partition", frame + "  updateStrategy: {rollingUpdate: {partition: -1}}", rolling + "partition: Invalid value: -1: must be greater than or equal to 0"},
		{"waiting for too long", frame + "  updateStrategy: {rollingUpdate: {minReadySeconds: 301}}", rolling + "minReadySeconds: Invalid value: 301: must be no more than 300 seconds"},
		{"a number as text", frame + "  updateStrategy: {rollingUpdate: {maxUnavailable: '5'}}", rolling + `maxUnavailable: Invalid value: "5": a valid percent string must be a numeric string followed by an ending '%'`},
		{"none unavailable", frame + "  updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", rolling + "maxUnavailable: Invalid value: 0: should not be less than 1"},
		{"no share unavailable", frame + "  scaleStrategy: {maxUnavailable: 0%}", `spec.scaleStrategy.maxUnavailable: Invalid value: "0%": should not be less than 1`},
		{"unknown update of claims", frame + "  volumeClaimUpdateStrategy: {type: Always}", "must be 'OnPodRollingUpdate' or 'OnDelete'"},
		{"negative start", frame + "  ordinals: {start: -1}", "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.ErrorContains(t, create(t, given(t, c.text)), c.want)
		})
	}
}

func TestScaleSubresource(t *testing.T) {
	c := env.Client(t)
	set := given(t, frame)
	require.NoError(t, create(t, set))
	set.Object["status"] = map[string]any{"replicas": int64(1), "labelSelector": "app=web"}
	require.NoError(t, c.Status().Update(t.Context(), set))

	scale := &unstructured.Unstructured{}
	require.NoError(t, c.SubResource("scale").Get(t.Context(), set, scale))
	assert.Equal(t, map[string]any{"replicas": int64(1), "selector": "app=web"}, scale.Object["status"])
	require.NoError(t, unstructured.SetNestedField(scale.Object, int64(3), "spec", "replicas"))
	require.NoError(t, c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	replicas, _, err := unstructured.NestedInt64(set.Object, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(3), replicas)
}

func TestColumns(t *testing.T) {
	set := given(t, frame+"    spec: {containers: [{name: main, image: nginx:1}]}\n  replicas: 3\n")
	require.NoError(t, create(t, set))
	set.Object["status"] = map[string]any{"replicas": int64(2), "updatedReplicas": int64(1), "readyReplicas": int64(2)}
	require.NoError(t, unstructured.SetNestedField(set.Object, "web-1", "status", "updateRevision"))
	require.NoError(t, unstructured.SetNestedSlice(set.Object, []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "Progressing", "message": "2 of 3 pods are ready", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}, "status", "conditions"))
	require.NoError(t, env.Client(t).Status().Update(t.Context(), set))

	names, rows := env.Table(t, schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "statefulsets"}, set.GetNamespace())
	assert.Equal(t, []string{"Name", "DESIRED", "CURRENT", "UPDATED", "READY", "AGE", "CONTAINERS", "IMAGES", "REVISION", "REASON", "MESSAGE"}, names)
	require.Len(t, rows, 1)
	assert.Equal(t, []any{"web", int64(3), int64(2), int64(1), int64(2)}, rows[0][:5])
	assert.Equal(t, []any{"main", "nginx:1", "web-1", "Progressing", "2 of 3 pods are ready"}, rows[0][6:])
}

// Issue 2535 of OpenKruise: server-side apply lost containers that others had put in.
func TestAppliersMergeContainersByName(t *testing.T) {
	c := env.Client(t)
	team := given(t, frame+"    spec: {containers: [{name: main, image: nginx}]}")
	mesh := team.DeepCopy()
	mesh.Object["spec"] = testenv.Fields(t, "template: {spec: {containers: [{name: proxy, image: envoy}]}}")
	require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(team), client.FieldOwner("team")))
	require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(mesh), client.FieldOwner("mesh")))

	got := team.DeepCopy()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(team), got))
	containers, _, err := unstructured.NestedSlice(got.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	assert.Len(t, containers, 2)
}

func TestCountersAreShownAtZero(t *testing.T) {
	env.Need(t)
	testenv.CountAtZero(t, env.Client(t), given(t, frame), "replicas", "readyReplicas", "availableReplicas",
		"currentReplicas", "updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas")
}
