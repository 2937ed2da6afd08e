package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) {
	env.Run(m, testenv.Options{CRDs: []string{"crd/clonesets.yaml"}})
}

// object is the CloneSet in the YAML, called web unless it says otherwise.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	set := &unstructured.Unstructured{Object: testenv.Fields(t, text)}
	set.SetAPIVersion("apps.kruise.io/v1beta1")
	set.SetKind("CloneSet")
	if set.GetName() == "" {
		set.SetName("web")
	}
	return set
}

const frame = `
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
`

func TestTemplatesAreAsFreeAsThoseOfBuiltInKinds(t *testing.T) {
	cases := []struct{ name, text string }{
		{"cpu as a fraction", frame + "    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 0.5}}}]}"},
		{"cpu as a number", frame + "    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 1}}}]}"},
		{"cpu as text", frame + "    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: 500m}}}]}"},
		{"size of a memory volume", frame + "    spec: {volumes: [{name: tmp, emptyDir: {medium: Memory, sizeLimit: 1.5Gi}}], containers: [{name: main, image: nginx}]}"},
		{"the same environment variable twice", frame + "    spec: {containers: [{name: main, image: nginx, env: [{name: A, value: a}, {name: A, value: b}]}]}"},
		{"the same port twice", frame + "    spec: {containers: [{name: main, image: nginx, ports: [{containerPort: 80}, {containerPort: 80}]}]}"},
		{"header without a value", frame + "    spec: {containers: [{name: main, image: nginx, livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: X}]}}}]}"},
		{"nothing where something may stand", frame + "    spec: {securityContext: null, nodeSelector: null, containers: [{name: main, image: nginx, resources: null, command: null}]}"},
		{"an empty status", frame + "    spec: {containers: [{name: main, image: nginx}]}\nstatus: {}"},
		{"claim template with a status", frame + "    spec: {containers: [{name: main, image: nginx}]}\n  volumeClaimTemplates: [{metadata: {name: data, creationTimestamp: null}, spec: {resources: {requests: {storage: 1}}}, status: {phase: Pending}}]"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			namespace := env.Namespace(t)
			set := object(t, c.text)
			set.SetNamespace(namespace)
			want, _, err := unstructured.NestedFieldCopy(set.Object, "spec", "template")
			require.NoError(t, err)
			require.NoError(t, env.Client(t).Create(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict)))
			got, _, err := unstructured.NestedFieldNoCopy(set.Object, "spec", "template")
			require.NoError(t, err)
			assert.Equal(t, withoutNulls(want), got, "the template is stored as it was sent")
		})
	}
}

// withoutNulls is what any API server makes of fields that are null.
func withoutNulls(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		if list, ok := value.([]any); ok {
			for i := range list {
				list[i] = withoutNulls(list[i])
			}
		}
		return value
	}
	for name, field := range fields {
		if field == nil {
			delete(fields, name)
		} else {
			fields[name] = withoutNulls(field)
		}
	}
	return fields
}

func TestStoredCloneSetsAreAccepted(t *testing.T) {
	c := env.Client(t)
	namespace := env.Namespace(t)
	file, err := os.ReadFile("crd/testdata/stored.yaml")
	require.NoError(t, err)
	documents := strings.Split(string(file), "\n---\n")
	require.Len(t, documents, 5)
	for _, document := range documents {
		set := object(t, document)
		set.SetNamespace(namespace)
		want := set.DeepCopy()
		require.NoError(t, c.Create(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict)), set.GetName())
		assert.Equal(t, want.Object["spec"], withoutDefaults(want, set), set.GetName())
		if want.Object["status"] != nil {
			set.Object["status"] = want.Object["status"]
			require.NoError(t, c.Status().Update(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict)), set.GetName())
			assert.Subset(t, set.Object["status"], want.Object["status"], set.GetName())
		}
	}
}

// withoutDefaults is the spec of got without the defaults of CloneSet's own fields that want does not have.
func withoutDefaults(want, got *unstructured.Unstructured) any {
	spec := got.Object["spec"].(map[string]any)
	for _, name := range []string{"replicas", "revisionHistoryLimit"} {
		if _, ok := want.Object["spec"].(map[string]any)[name]; !ok {
			delete(spec, name)
		}
	}
	return spec
}

func TestMisspeltFieldsAreRefusedByStrictClients(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"in a container", frame + "    spec: {containers: [{name: main, image: nginx, imagePullPolcy: Always}]}", `unknown field "spec.template.spec.containers[0].imagePullPolcy"`},
		{"in the template's metadata", "spec: {selector: {}, template: {metadata: {lables: {}}}}", `unknown field "spec.template.metadata.lables"`},
		{"in the strategy", frame + "  updateStrategy: {partition: 1}", `unknown field "spec.updateStrategy.partition"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := object(t, c.text)
			set.SetNamespace(env.Namespace(t))
			err := env.Client(t).Create(t.Context(), set, client.FieldValidation(metav1.FieldValidationStrict))
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestTheSchemaRefusesWithTheWordsOfTheWebhook(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"no selector", "spec: {template: {}}", "spec.selector: Required value"},
		{"negative replicas", frame + "  replicas: -1", "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
		{"partition as a word", frame + "  updateStrategy: {rollingUpdate: {partition: abc}}", `spec.updateStrategy.rollingUpdate.partition: Invalid value: "abc": must be a number or a percentage such as 20%`},
		{"partition as text", frame + "  updateStrategy: {rollingUpdate: {partition: '5'}}", "must be a number or a percentage such as 20%"},
		{"negative partition", frame + "  updateStrategy: {rollingUpdate: {partition: -1}}", "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0"},
		{"unknown type", frame + "  updateStrategy: {type: Recreate}", "must be 'RollingUpdate' or 'OnDelete'"},
		{"unknown policy", frame + "  updateStrategy: {rollingUpdate: {podUpdatePolicy: Recreate}}", "must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set := object(t, c.text)
			set.SetNamespace(env.Namespace(t))
			assert.ErrorContains(t, env.Client(t).Create(t.Context(), set), c.want)
		})
	}
}

func TestAppliersMergeContainersByName(t *testing.T) {
	c := env.Client(t)
	namespace := env.Namespace(t)
	apply := func(owner, text string) {
		set := object(t, text)
		set.SetNamespace(namespace)
		require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(set), client.FieldOwner(owner)))
	}
	apply("team", frame+"    spec: {containers: [{name: main, image: nginx, volumeMounts: [{name: a, mountPath: /a}]}]}")
	apply("mesh", "spec: {template: {spec: {containers: [{name: proxy, image: envoy}, {name: main, volumeMounts: [{name: b, mountPath: /b}]}]}}}")

	got := object(t, "{}")
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, got))
	containers, _, err := unstructured.NestedSlice(got.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Len(t, containers, 2)
	main := slices.IndexFunc(containers, func(c any) bool { return c.(map[string]any)["name"] == "main" })
	require.GreaterOrEqual(t, main, 0)
	assert.Equal(t, "nginx", containers[main].(map[string]any)["image"])
	assert.Len(t, containers[main].(map[string]any)["volumeMounts"], 2)
}

func TestScaleSubresource(t *testing.T) {
	c := env.Client(t)
	set := object(t, frame)
	set.SetNamespace(env.Namespace(t))
	require.NoError(t, c.Create(t.Context(), set))
	replicas, _, err := unstructured.NestedInt64(set.Object, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(1), replicas)

	scale := &unstructured.Unstructured{}
	require.NoError(t, c.SubResource("scale").Get(t.Context(), set, scale))
	require.NoError(t, unstructured.SetNestedField(scale.Object, int64(3), "spec", "replicas"))
	require.NoError(t, c.SubResource("scale").Update(t.Context(), set, client.WithSubResourceBody(scale)))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	replicas, _, err = unstructured.NestedInt64(set.Object, "spec", "replicas")
	require.NoError(t, err)
	assert.Equal(t, int64(3), replicas)
}

func TestCountersAreShownAtZero(t *testing.T) {
	env.Need(t)
	set := object(t, frame)
	set.SetNamespace(env.Namespace(t))
	testenv.CountAtZero(t, env.Client(t), set, "replicas", "readyReplicas", "availableReplicas",
		"updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas", "expectedUpdatedReplicas")
}
