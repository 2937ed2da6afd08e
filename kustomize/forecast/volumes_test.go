package forecast_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"

	"github.com/flotilla-project/flotilla/statefulset/whatif"

	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/progress"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
	"github.com/flotilla-project/flotilla/kustomize/workload"
)

const db = `
apiVersion: apps.kruise.io/v1beta1
kind: StatefulSet
metadata: {name: db, namespace: default, uid: db}
spec:
  replicas: 3
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - {name: main, image: "app:v1", volumeMounts: [{name: data, mountPath: /data}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
`

// database returns the scene around a StatefulSet that does not run yet, on nodes in zones.
func database(t *testing.T, zones ...string) *forecast.Scene {
	t.Helper()
	kind, err := workload.KindNamed("StatefulSet")
	require.NoError(t, err)
	scene := &forecast.Scene{Kind: kind, Set: scenes.Object(t, db), Now: scenes.Now()}
	for i, zone := range zones {
		name := "node-" + strconv.Itoa(i)
		scene.Nodes = append(scene.Nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name, "zone": zone}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return scene
}

// running returns the scene around a StatefulSet. Its pod i runs on node i, with volumes that only nodes with the same value
// of a label can mount.
func running(t *testing.T, label string, zones ...string) *forecast.Scene {
	t.Helper()
	scene := database(t, zones...)
	played, err := whatif.Kind("")
	require.NoError(t, err)
	set := played.New()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(scene.Set.Object, set))
	objects := []action.Object{set}
	for _, node := range scene.Nodes {
		objects = append(objects, node)
	}
	place := func(_ *cluster.World, pod *corev1.Pod) (node, reason string) {
		return "node-" + pod.Name[len("db-"):], ""
	}
	w := nodes.New(cluster.Options{Calm: true, Begin: scenes.Now().Add(-time.Hour), Schedule: place}, objects...)
	key := types.NamespacedName{Namespace: "default", Name: "db"}
	require.NoError(t, operator.New(w.Cluster(), whatif.Planner(w.Cluster(), key), operator.Settings{Coalesce: true}).Play(2000))

	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w.View(nil).Object("StatefulSet", key))
	require.NoError(t, err)
	scene.Set.Object = fields
	scene.Set.SetAPIVersion("apps.kruise.io/v1beta1")
	scene.Set.SetKind("StatefulSet")
	scene.Pods, scene.Revisions = w.Pods(), cluster.List[*appsv1.ControllerRevision](w.View(nil))
	for i, claim := range cluster.List[*corev1.PersistentVolumeClaim](w.View(nil)) {
		bound := claim.DeepCopy()
		bound.Spec.VolumeName = "volume-" + claim.Name
		scene.Claims = append(scene.Claims, bound)
		scene.Volumes = append(scene.Volumes, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: bound.Spec.VolumeName},
			Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{scene.Nodes[i].Labels[label]}},
				}}},
			}}},
		})
	}
	require.Len(t, scene.Pods, 3)
	require.Len(t, scene.Claims, 3)
	return scene
}

func cordon(node *corev1.Node) {
	node.Spec.Unschedulable = true
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
}

func newImage(t *testing.T, scene *forecast.Scene) *unstructured.Unstructured {
	t.Helper()
	set := scene.Set.DeepCopy()
	require.NoError(t, unstructured.SetNestedSlice(set.Object, []any{map[string]any{
		"name": "main", "image": "app:v2", "volumeMounts": []any{map[string]any{"name": "data", "mountPath": "/data"}},
	}}, "spec", "template", "spec", "containers"))
	return set
}

func TestPodsFollowTheirVolumes(t *testing.T) {
	local, zonal := corev1.LabelHostname, "zone"
	for name, c := range map[string]struct {
		label   string
		scene   func(*forecast.Scene)
		edit    forecast.Edit
		phase   progress.Phase
		message string
		nodes   map[string]string
	}{
		"local volumes keep pods on their nodes": {
			label: local, phase: progress.Complete, nodes: map[string]string{"db-0": "node-0", "db-1": "node-1", "db-2": "node-2"},
		},
		"a pod waits for the node of its volume": {
			label: local, scene: func(s *forecast.Scene) { cordon(s.Nodes[1]) }, phase: progress.Failed,
			message: "; pod db-1 waits for a node: 0/4 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unschedulable: }, " +
				"3 node(s) didn't match PersistentVolume's node affinity",
		},
		"a pod moves within the zone of its volume": {
			label: zonal, scene: func(s *forecast.Scene) { cordon(s.Nodes[1]) }, phase: progress.Complete,
			nodes: map[string]string{"db-1": "node-3"},
		},
		"a lost node keeps the pod and its volume": {
			label: local, edit: forecast.Edit{LoseNodes: []string{"node-1"}}, phase: progress.Failed, message: "not available yet: db-1",
		},
		"a claim that is new can be mounted on all nodes": {
			label: local, phase: progress.Complete, nodes: map[string]string{"db-1": "node-3"},
			scene: func(s *forecast.Scene) {
				cordon(s.Nodes[1])
				s.Claims[1].Spec.VolumeName = ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene := running(t, c.label, "a", "b", "c", "b")
			if c.scene != nil {
				c.scene(scene)
			}
			places := map[string]string{}
			c.edit.To = newImage(t, scene)
			c.edit.Shown = func(_ *workload.Set, pods []*corev1.Pod, _ time.Time) {
				for _, pod := range pods {
					places[pod.Name] = pod.Spec.NodeName
				}
			}
			f, err := forecast.Play(t.Context(), scene, c.edit)
			require.NoError(t, err)
			assert.Equal(t, c.phase, f.Phase, f.Message)
			assert.Contains(t, f.Message, c.message)
			for pod, node := range c.nodes {
				assert.Equal(t, node, places[pod], pod)
			}
		})
	}
}
