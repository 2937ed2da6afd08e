package forecast_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
