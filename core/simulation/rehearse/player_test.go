package rehearse_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

type snapshot = model.Snapshot[*appsv1.ReplicaSet]

// kind is a workload that writes its revision and the number of its pods, and caches pods and claims with a label.
func kind() *frame.Workload[appsv1.ReplicaSet, *appsv1.ReplicaSet, snapshot] {
	return &frame.Workload[appsv1.ReplicaSet, *appsv1.ReplicaSet, snapshot]{
		Name: "replicaset", Kind: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), PodLabel: contract.InstanceIDLabel,
		Cached: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   fastclient.PodsWithLabel(contract.InstanceIDLabel),
			&corev1.PersistentVolumeClaim{}: {Label: fastclient.WithLabel(contract.InstanceIDLabel), Transform: fastclient.Trim},
		},
		ClusterCached: map[client.Object]cache.ByObject{&corev1.Node{}: fastclient.Nodes()},
		Describe: func(set *appsv1.ReplicaSet) frame.Set {
			return frame.Set{Selector: set.Spec.Selector, Template: &set.Spec.Template, Replicas: set.Spec.Replicas, Pods: set.Status.Replicas}
		},
		IsMember:          func(_ *appsv1.ReplicaSet, pod string) bool { return pod != "foreign" },
		DefaultPullPolicy: podspec.ServerDefault, HashLabel: "hash",
		Snapshot: func(_ context.Context, _ *frame.Controller, seen snapshot) (snapshot, error) { return seen, nil },
		Compute: func(s snapshot) model.Plan {
			var p model.Plan
			if s.Chosen.Create {
				p.Add(action.Step{Name: "revision", Actions: []action.Action{{Verb: action.Create, Object: s.Chosen.Update, Reason: "New"}}})
			}
			return p
		},
		Status: func(set *appsv1.ReplicaSet, seen snapshot, _ model.Plan, _ action.Failures) {
			set.Status.Replicas = int32(len(seen.Pods))
		},
	}
}

func labelled(name string, owner *appsv1.ReplicaSet, more map[string]string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: gen.Namespace, Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"}}
	maps.Copy(m.Labels, more)
	if owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
	return m
}

// What the plans of a world are made from is what the frame reads on a server: labelled pods from the cache, those
// without the label from the server and after them, trimmed and selected as the kind says.
func TestASnapshotIsReadAsOnAServer(t *testing.T) {
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web", UID: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: gen.Template(gen.Label("app", "web"), gen.Image("main", "app:1")),
		},
	}
	id := map[string]string{contract.InstanceIDLabel: "id"}
	pod := func(name string, owner *appsv1.ReplicaSet, more map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: labelled(name, owner, more), Spec: set.Spec.Template.Spec}
	}
	w := simulate.New(cluster.Options{Calm: true}, set,
		pod("lost", set, nil), pod("own", set, id), pod("orphan", nil, nil), pod("foreign", nil, id),
		&corev1.PersistentVolumeClaim{ObjectMeta: labelled("known", nil, id)}, &corev1.PersistentVolumeClaim{ObjectMeta: labelled("unknown", nil, nil)},
	)
	w.AddNode("node-0")
	var seen []snapshot
	p := rehearse.New(w.Cluster(), rehearse.Options[appsv1.ReplicaSet, *appsv1.ReplicaSet, snapshot]{
		Set: types.NamespacedName{Namespace: gen.Namespace, Name: "web"}, Workload: kind,
		Judge: func(s snapshot, _ model.Plan) { seen = append(seen, s) },
	})
	simulate.NewOperator(w, p, simulate.Faults{}).Pass()
	require.Len(t, seen, 1)
	s := seen[0]
	names := func(pods []*corev1.Pod) (all []string) {
		for _, pod := range pods {
			all = append(all, pod.Name)
		}
		return all
	}
	assert.Equal(t, []string{"own", "lost"}, names(s.Pods), "lost pods come after the cached ones")
	assert.Empty(t, s.Pods[0].Spec.Containers[0].Command, "the cache is trimmed")
	assert.Equal(t, []string{"orphan"}, names(s.Orphans))
	assert.NotNil(t, s.Claim("known"))
	assert.Nil(t, s.Claim("unknown"), "claims without the label are not cached")
	assert.Equal(t, map[string]string{"node": "node-0"}, s.NodeLabels("node-0"))
	assert.Nil(t, s.NodeLabels("node-1"))
	assert.Equal(t, w.Now(), s.Now)
	assert.Equal(t, revision.Hash(s.Chosen.Update), s.Chosen.Update.Labels["hash"])
	written := cluster.Get[*appsv1.ReplicaSet](w.View(nil), gen.Namespace, "web")
	assert.Equal(t, int32(2), written.Status.Replicas)
	assert.Len(t, cluster.List[*appsv1.ControllerRevision](w.View(nil)), 1)
}
