package forecast_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// A workload that the cluster has not is played from its creation.
func TestEachKindIsPlayed(t *testing.T) {
	for kind, c := range map[string]struct {
		text string
		pods int
	}{
		"CloneSet": {scenes.Web, 10},
		"StatefulSet": {`
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  serviceName: web
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:v1"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, 3},
		"DaemonSet": {`
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "app:v1"}]}
`, 2},
	} {
		t.Run(kind, func(t *testing.T) {
			of, err := workload.KindNamed(kind)
			require.NoError(t, err)
			scene := &forecast.Scene{Kind: of, Set: scenes.Object(t, c.text), Now: scenes.Now()}
			for _, name := range []string{"a", "b"} {
				scene.Nodes = append(scene.Nodes, &corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"kubernetes.io/hostname": name}},
					Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
				})
			}
			f, err := forecast.Play(t.Context(), scene, forecast.Edit{})
			require.NoError(t, err)
			assert.Equal(t, progress.Complete, f.Phase, f.Message)
			assert.Equal(t, []int{c.pods, c.pods, 0}, []int{f.Added, f.MostPods, f.LowestAvailable})
		})
	}
}

// agent is a DaemonSet that is updated in place, one pod at a time.
const agent = `
apiVersion: apps.kruise.io/v1beta1
kind: DaemonSet
metadata: {name: agent, namespace: default, uid: agent, generation: 1}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: "app:v1"}]}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {rollingUpdateType: InPlaceIfPossible, maxUnavailable: 1}}
`

// An operator sees its own writes at once: pods that only change their metadata wait for nothing.
func TestMetadataOfADaemonSetChangesAtOnce(t *testing.T) {
	scene := scenes.Settled(t, agent)
	edited := scene.Set.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(edited.Object, "b", "spec", "template", "metadata", "annotations", "config"))
	f, err := forecast.Play(t.Context(), scene, forecast.Edit{To: edited})
	require.NoError(t, err)
	assert.Equal(t, []any{progress.Complete, 3, 3}, []any{f.Phase, f.InPlace, f.LowestAvailable}, f.Message)
	assert.Less(t, f.Seconds, 5.0)
}

// A user who may not read the nodes gets the forecast of a DaemonSet on the nodes of its pods.
func TestADaemonSetWithoutNodesRunsOnThoseOfItsPods(t *testing.T) {
	scene := scenes.Settled(t, agent)
	scene.Nodes = nil
	require.NoError(t, unstructured.SetNestedField(scene.Set.Object, "ssd", "spec", "template", "spec", "nodeSelector", "disk"))
	edited := scene.Set.DeepCopy()
	containers := []any{map[string]any{"name": "main", "image": "app:v2"}}
	require.NoError(t, unstructured.SetNestedSlice(edited.Object, containers, "spec", "template", "spec", "containers"))
	f, err := forecast.Play(t.Context(), scene, forecast.Edit{To: edited})
	require.NoError(t, err)
	assert.Equal(t, []any{progress.Complete, 3, 3}, []any{f.Phase, f.InPlace + f.Recreated, f.MostPods}, f.Message)
}

// growing is a StatefulSet with claims that grow with its updates.
const growing = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: database, namespace: default, uid: database, generation: 1}
spec:
  replicas: 3
  serviceName: database
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: database}}
  template:
    metadata: {labels: {app: database}}
    spec:
      readinessGates: [{conditionType: InPlaceUpdateReady}]
      containers: [{name: main, image: "app:v1"}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: standard, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  volumeClaimUpdateStrategy: {type: OnPodRollingUpdate}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}
`

// With the feature gate claims grow before their pods are updated, if their StorageClass allows it.
func TestClaimsGrowBeforeTheirPods(t *testing.T) {
	for expandable, want := range map[bool]progress.Phase{true: progress.Complete, false: progress.Failed} {
		scene := scenes.Settled(t, growing)
		scene.Gates = "StatefulSetAutoResizePVCGate=true"
		scene.Classes = []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "standard", UID: "standard"}, AllowVolumeExpansion: &expandable}}
		edited := scenes.Object(t, strings.NewReplacer("app:v1", "app:v2", "1Gi", "2Gi").Replace(growing))
		edited.SetUID(scene.Set.GetUID())
		f, err := forecast.Play(t.Context(), scene, forecast.Edit{To: edited})
		require.NoError(t, err)
		assert.Equal(t, want, f.Phase, f.Message)
		if expandable {
			assert.Equal(t, []int{3, 2}, []int{f.InPlace, f.LowestAvailable}, f.Message)
		}
	}
}
