package whatif_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/whatif"
)

// app is a world with spreads.
type app struct {
	*nodes.World

	t       *testing.T
	spreads *whatif.Spreads
}

// start plays a world of the objects.
func start(t *testing.T, o cluster.Options, objects ...action.Object) *app {
	t.Helper()
	s := whatif.New()
	o.Seed, o.Calm, o.DetectMutation, o.Begin, o.Mutate = 1, true, true, gen.Epoch(), s.Mutate
	w := nodes.New(o, objects...)
	s.Watch(w.Cluster())
	t.Cleanup(func() {
		assert.Nil(t, w.Mutated())
		assert.Empty(t, w.Violations())
	})
	return &app{w, t, s}
}

// workload returns workload web of a kind of apps.kruise.io.
func workload(kind string, replicas int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": contract.AppsGroup + "/v1beta1", "kind": kind,
		"metadata": map[string]any{"namespace": gen.Namespace, "name": "web", "uid": "of-web"},
		"spec": map[string]any{
			"replicas": int64(replicas), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		},
	}}
}

func cloneSet(replicas int) *unstructured.Unstructured { return workload("CloneSet", replicas) }

// spread returns spread web of CloneSet web.
func spread(subsets ...v1beta1.WorkloadSpreadSubset) *v1beta1.WorkloadSpread {
	return &v1beta1.WorkloadSpread{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "web"},
		Spec: v1beta1.WorkloadSpreadSpec{
			TargetReference: &v1beta1.TargetReference{APIVersion: contract.AppsGroup + "/v1beta1", Kind: "CloneSet", Name: "web"}, Subsets: subsets,
		},
	}
}

// upTo returns a subset with a limit, and unlimited one without.
func upTo(name string, most intstr.IntOrString) v1beta1.WorkloadSpreadSubset {
	return v1beta1.WorkloadSpreadSubset{Name: name, MaxReplicas: &most}
}

func unlimited(name string) v1beta1.WorkloadSpreadSubset {
	return v1beta1.WorkloadSpreadSubset{Name: name}
}

func number(n int32) intstr.IntOrString { return intstr.FromInt32(n) }

func patched(s v1beta1.WorkloadSpreadSubset, patch string) v1beta1.WorkloadSpreadSubset {
	s.Patch = runtime.RawExtension{Raw: []byte(patch)}
	return s
}

// pod returns pod web-n of workload web.
func pod(owner action.Object, n int) *corev1.Pod {
	return gen.Pod(fmt.Sprint("web-", n), gen.Label("app", "web"), gen.OwnedBy(owner))
}

// create makes so many pods of the workload.
func (a *app) create(owner action.Object, n int) {
	a.t.Helper()
	for i := range n {
		_, err := a.Create(cluster.OperatorActor, pod(owner, i))
		require.NoError(a.t, err)
	}
}

// subsets returns the subset of each active pod of the world by the pod's name, "" for none.
func (a *app) subsets() map[string]string {
	all := map[string]string{}
	for _, pod := range a.Pods() {
		if pod.DeletionTimestamp == nil {
			all[pod.Name] = subsetOf(pod)
		}
	}
	return all
}

func subsetOf(pod *corev1.Pod) string {
	m := struct{ Subset string }{}
	_ = json.Unmarshal([]byte(pod.Annotations[v1beta1.MatchedAnnotation]), &m)
	return m.Subset
}

func (a *app) pod(name string) *corev1.Pod {
	a.t.Helper()
	pod := cluster.Get[*corev1.Pod](a.View(nil), gen.Namespace, name)
	require.NotNil(a.t, pod, name)
	return pod
}

func (a *app) remove(name string) {
	a.t.Helper()
	require.NoError(a.t, a.Delete(cluster.UserActor, a.pod(name)))
}

// state returns the state of the only spread.
func (a *app) state() whatif.State {
	a.t.Helper()
	states := a.spreads.States()
	require.Len(a.t, states, 1)
	require.NoError(a.t, states[0].Err)
	return states[0]
}

// scale sets the replicas of CloneSet web and lets its operator work.
func (a *app) scale(replicas int) {
	a.t.Helper()
	a.replicas(replicas)
	a.play()
}

// replicas sets the replicas of CloneSet web.
func (a *app) replicas(replicas int) {
	a.t.Helper()
	require.NoError(a.t, cluster.Change(a, cluster.UserActor, "", cloneSet(0), func(u *unstructured.Unstructured) {
		require.NoError(a.t, unstructured.SetNestedField(u.Object, int64(replicas), "spec", "replicas"))
	}))
}

// pass lets the operator of CloneSet web work once.
func (a *app) pass() {
	operator.New(a.Cluster(), operator.PlannerFunc(scaling), operator.Settings{}).Pass()
}

// play lets the operator of CloneSet web work to the end.
func (a *app) play() {
	a.t.Helper()
	require.NoError(a.t, operator.New(a.Cluster(), operator.PlannerFunc(scaling), operator.Settings{}).Play(1000), a.Story())
}

// scaling plans the pods of CloneSet web: it makes those that lack, and deletes those with the least cost, of equal ones the
// youngest.
func scaling(view *operator.View, _ time.Time, _ uint64) ([]action.Step, time.Duration) {
	set := view.Object("CloneSet", types.NamespacedName{Namespace: gen.Namespace, Name: "web"}).(*unstructured.Unstructured)
	replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
	pods := view.Active(set.GetUID())
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(costOf(a), costOf(b)), cmp.Compare(b.Name, a.Name))
	})
	step := action.Step{Name: "scale"}
	for n := 0; len(pods)+len(step.Actions) < int(replicas); n++ {
		if view.Stored("Pod", types.NamespacedName{Namespace: gen.Namespace, Name: fmt.Sprint("web-", n)}) == nil {
			step.Actions = append(step.Actions, action.Action{Verb: action.Create, Object: pod(set, n)})
		}
	}
	for _, pod := range pods[:max(0, len(pods)-int(replicas))] {
		step.Actions = append(step.Actions, action.Action{Verb: action.Delete, Object: pod})
	}
	return []action.Step{step}, 0
}

func costOf(pod *corev1.Pod) int {
	cost, _ := strconv.Atoi(pod.Annotations[contract.PodDeletionCostAnnotation])
	return cost
}
