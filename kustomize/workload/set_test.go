package workload_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// read reads a workload that a test writes down.
func read(t *testing.T, text string) *workload.Set {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(data))
	kind, err := workload.KindNamed(object.GetKind())
	require.NoError(t, err)
	s, err := workload.Read(kind, object)
	require.NoError(t, err)
	return s
}

const (
	cloneSet = `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: web, resourceVersion: "7"}, `
	older    = `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web}, `
	stateful = `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: web}, `
	daemon   = `{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, metadata: {name: web}, `
)

func TestTheTargetIsWhatThePartitionLeaves(t *testing.T) {
	for text, want := range map[string]int{
		cloneSet + `spec: {}}`: 1,
		cloneSet + `spec: {replicas: 10, updateStrategy: {rollingUpdate: {partition: 3}}}}`:                                                  7,
		cloneSet + `spec: {replicas: 10, updateStrategy: {rollingUpdate: {partition: 80%}}}}`:                                                2,
		cloneSet + `spec: {replicas: 4, updateStrategy: {rollingUpdate: {partition: 99%}}}}`:                                                 1,
		cloneSet + `spec: {replicas: 4, updateStrategy: {rollingUpdate: {partition: 100%}}}}`:                                                0,
		cloneSet + `spec: {replicas: 1, updateStrategy: {rollingUpdate: {partition: 99%}}}}`:                                                 0,
		cloneSet + `spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 50%}}}}`:                                                 2,
		cloneSet + `spec: {replicas: 10, updateStrategy: {rollingUpdate: {partition: 33.3%}}}}`:                                              6,
		cloneSet + `spec: {replicas: 10000, updateStrategy: {rollingUpdate: {partition: 0.1%}}}}`:                                            9990,
		cloneSet + `spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 7}}}}`:                                                   0,
		cloneSet + `spec: {replicas: 5, updateStrategy: {type: OnDelete, rollingUpdate: {partition: 2}}}}`:                                   5,
		older + `spec: {replicas: 5, updateStrategy: {partition: 2}}}`:                                                                       3,
		stateful + `spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}}`:                                                   2,
		daemon + `spec: {updateStrategy: {rollingUpdate: {partition: 50%}}}, status: {desiredNumberScheduled: 3}}`:                           2,
		daemon + `spec: {updateStrategy: {rollingUpdate: {selector: {matchLabels: {a: b}}}}}, status: {desiredNumberScheduled: 3}}`:          workload.Unknown,
		daemon + `spec: {updateStrategy: {rollingUpdate: {partition: 1}}}}`:                                                                  0,
		cloneSet + `spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: oops}}}, status: {replicas: 3, updatedReplicas: 1}}`:     3,
		cloneSet + `spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: x%}}}, status: {replicas: 3, currentRevision: web-abc}}`: 3,
	} {
		assert.Equal(t, want, read(t, text).Target, text)
	}
}

func TestStatusAndStrategyAreReadFromEveryKindAndVersion(t *testing.T) {
	const status = `status: {observedGeneration: 3, replicas: 4, readyReplicas: 3, availableReplicas: 2, updatedReplicas: 1,
  updateRevision: web-b, currentRevision: web-a, conditions: [{type: Ready, status: "False", reason: R, message: M}]}`
	for text, policy := range map[string]string{
		cloneSet + `spec: {replicas: 4, updateStrategy: {rollingUpdate: {paused: true, podUpdatePolicy: InPlaceOnly}}}, ` + status + `}`: "InPlaceOnly",
		older + `spec: {replicas: 4, updateStrategy: {paused: true, type: InPlaceIfPossible}}, ` + status + `}`:                          "InPlaceIfPossible",
		stateful + `spec: {replicas: 4, updateStrategy: {rollingUpdate: {paused: true}}}, ` + status + `}`:                               "",
	} {
		s := read(t, text)
		assert.Equal(t, []int{4, 4, 3, 2, 1}, []int{s.Wanted, s.Pods, s.Ready, s.Available, s.Updated}, text)
		assert.Equal(t, int64(3), s.Observed)
		assert.Equal(t, []string{"web-b", "web-a"}, []string{s.UpdateRevision, s.CurrentRevision})
		assert.Equal(t, &workload.Condition{Type: "Ready", Status: "False", Reason: "R", Message: "M"}, s.Condition("Ready"))
		assert.Nil(t, s.Condition("Stalled"))
		assert.True(t, s.Paused)
		assert.Equal(t, policy, s.Policy)
		assert.Equal(t, policy != "", s.InPlace())
	}
	const nodes = `status: {desiredNumberScheduled: 4, currentNumberScheduled: 4, numberReady: 3, numberAvailable: 2, updatedNumberScheduled: 1, `
	for _, text := range []string{
		daemon + nodes + `updateRevision: b}}`,
		`{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {name: web}, ` + nodes + `daemonSetHash: b}}`,
	} {
		s := read(t, text)
		assert.Equal(t, []int{4, 4, 3, 2, 1}, []int{s.Wanted, s.Pods, s.Ready, s.Available, s.Updated}, text)
		assert.True(t, s.IsUpdated("web-b"))
		assert.False(t, s.IsUpdated("web-a"))
	}
}

func TestHooksAreReadAndNamed(t *testing.T) {
	s := read(t, cloneSet+`spec: {lifecycle: {preDelete: {labelsHandler: {a: b}, finalizersHandler: [x/y]}}}}`)
	assert.Equal(t, "label a=b and finalizer x/y", s.Lifecycle.PreDelete.String())
	assert.Nil(t, s.Lifecycle.InPlaceUpdate)
}

func TestEditsNameTheFieldsOfTheVersion(t *testing.T) {
	flat := read(t, older+`spec: {}}`)
	deep := read(t, cloneSet+`spec: {}}`)
	for want, make := range map[string]func() (workload.Patch, error){
		`{"spec":{"updateStrategy":{"paused":true}}}`:                      flat.Pause,
		`{"spec":{"updateStrategy":{"paused":null}}}`:                      flat.Resume,
		`{"spec":{"updateStrategy":{"rollingUpdate":{"paused":true}}}}`:    deep.Pause,
		`{"spec":{"updateStrategy":{"rollingUpdate":{"paused":null}}}}`:    deep.Resume,
		`{"spec":{"template":{"metadata":{"annotations":{"a.b/c":"d"}}}}}`: func() (workload.Patch, error) { return deep.Annotate("a.b/c", "d") },
	} {
		patch, err := make()
		require.NoError(t, err)
		assert.Equal(t, types.MergePatchType, patch.Type)
		assert.JSONEq(t, want, string(patch.Body))
	}
	patch, err := deep.SetTemplate(map[string]any{"spec": map[string]any{"x": int64(9007199254740993)}})
	require.NoError(t, err)
	assert.Equal(t, types.JSONPatchType, patch.Type)
	assert.JSONEq(t, `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},
		{"op":"replace","path":"/spec/template","value":{"spec":{"x":9007199254740993}}}]`, string(patch.Body))
}

func TestContainersAreThoseThatRunAsLongAsThePod(t *testing.T) {
	assert.Equal(t, []string{"mesh", "main", "log"}, read(t, cloneSet+`spec: {template: {spec: {
		initContainers: [{name: setup}, {name: retried, restartPolicy: OnFailure}, {name: mesh, restartPolicy: Always}],
		containers: [{name: main}, {name: log}]}}}}`).Containers())
}
