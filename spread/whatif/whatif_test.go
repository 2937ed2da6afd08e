package whatif_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/spread/api/v1alpha1"
	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/config"
	"github.com/flotilla-project/flotilla/spread/whatif"
)

// Four pods of workload web are created at once.
func TestNewPodsGoToTheFirstSubsetWithRoom(t *testing.T) {
	a, b := upTo("a", number(1)), upTo("b", number(2))
	for name, c := range map[string]struct {
		kind    string
		spread  action.Object
		want    []string // the subsets of web-0 and so on
		subsets []whatif.Subset
	}{
		"limits":         {"CloneSet", spread(a, b, unlimited("c")), []string{"a", "b", "b", "c"}, []whatif.Subset{{"a", 1, 1, 0, false}, {"b", 2, 2, 0, false}, {"c", 1, -1, -1, false}}},
		"one subset":     {"CloneSet", spread(unlimited("a")), []string{"a", "a", "a", "a"}, []whatif.Subset{{"a", 4, -1, -1, false}}},
		"a share":        {"CloneSet", spread(upTo("a", intstr.FromString("50%")), unlimited("b")), []string{"a", "a", "b", "b"}, []whatif.Subset{{"a", 2, 2, 0, false}, {"b", 2, -1, -1, false}}},
		"all are full":   {"CloneSet", spread(a, b), []string{"a", "b", "b", ""}, []whatif.Subset{{"a", 1, 1, 0, false}, {"b", 2, 2, 0, false}}},
		"room is left":   {"CloneSet", spread(a, upTo("b", number(5))), []string{"a", "b", "b", "b"}, []whatif.Subset{{"a", 1, 1, 0, false}, {"b", 3, 5, 2, false}}},
		"a StatefulSet":  {"StatefulSet", of("StatefulSet", spread(b, unlimited("c"))), []string{"b", "b", "c", "c"}, []whatif.Subset{{"b", 2, 2, 0, false}, {"c", 2, -1, -1, false}}},
		"another kind":   {"CloneSet", of("StatefulSet", spread(a, b)), []string{"", "", "", ""}, []whatif.Subset{{"a", 0, 1, 1, false}, {"b", 0, 2, 2, false}}},
		"as v1alpha1":    {"CloneSet", old(t, spread(a, b, unlimited("c"))), []string{"a", "b", "b", "c"}, []whatif.Subset{{"a", 1, 1, 0, false}, {"b", 2, 2, 0, false}, {"c", 1, -1, -1, false}}},
		"without a type": {"CloneSet", untyped(t, old(t, spread(a, b))), []string{"a", "b", "b", ""}, []whatif.Subset{{"a", 1, 1, 0, false}, {"b", 2, 2, 0, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			set := workload(c.kind, 4)
			w := start(t, cluster.Options{}, set, c.spread)
			w.create(set, 4)
			for i, subset := range c.want {
				assert.Equal(t, subset, subsetOf(w.pod(pod(set, i).Name)), i)
			}
			assert.Equal(t, c.subsets, w.state().Subsets, "at once")
			w.Advance(time.Minute)
			assert.Equal(t, c.subsets, w.state().Subsets, "and later")
		})
	}
}

func of(kind string, s *v1beta1.WorkloadSpread) *v1beta1.WorkloadSpread {
	s.Spec.TargetReference.Kind = kind
	return s
}

// old returns the spread in the version before.
func old(t *testing.T, s *v1beta1.WorkloadSpread) *v1alpha1.WorkloadSpread {
	t.Helper()
	o := &v1alpha1.WorkloadSpread{ObjectMeta: s.ObjectMeta}
	o.Spec.TargetReference = (*v1alpha1.TargetReference)(s.Spec.TargetReference)
	for _, subset := range s.Spec.Subsets {
		o.Spec.Subsets = append(o.Spec.Subsets, v1alpha1.WorkloadSpreadSubset{
			Name: subset.Name, RequiredNodeSelectorTerm: subset.RequiredNodeSelector, MaxReplicas: subset.MaxReplicas,
		})
	}
	return o
}

// untyped returns the object as a server sends it.
func untyped(t *testing.T, o *v1alpha1.WorkloadSpread) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1beta1.WorkloadSpreadKind))
	return u
}

func zone(name string) *corev1.NodeSelectorTerm {
	return &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}
}

func TestAPodHasTheRulesOfItsSubset(t *testing.T) {
	subset := patched(upTo("a", number(1)), `{"metadata":{"labels":{"subset":"a"}},"spec":{"nodeSelector":{"disk":"fast"}}}`)
	subset.RequiredNodeSelector = zone("a")
	subset.Tolerations = []corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}
	set := cloneSet(2)
	w := start(t, cluster.Options{}, set, spread(subset))
	w.create(set, 2)
	in, out := w.pod("web-0"), w.pod("web-1")
	assert.Equal(t, "a", in.Labels["subset"])
	assert.Equal(t, "web", in.Labels["app"])
	assert.Equal(t, map[string]string{"disk": "fast"}, in.Spec.NodeSelector)
	assert.Equal(t, subset.Tolerations, in.Spec.Tolerations)
	assert.Equal(t, []corev1.NodeSelectorTerm{*zone("a")}, in.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
	assert.JSONEq(t, `{"name":"web","subset":"a"}`, in.Annotations[v1beta1.MatchedAnnotation])
	assert.NotEmpty(t, in.Annotations[contract.PodDeletionCostAnnotation])

	assert.Equal(t, pod(set, 1).Spec, out.Spec, "it has no subset")
	assert.Equal(t, pod(set, 1).Labels, out.Labels)
	assert.Empty(t, out.Annotations)
	assert.Equal(t, 1, w.state().Without)
	assert.Equal(t, 1, w.state().Unplaced)
}

func TestADeletedPodFreesItsPlace(t *testing.T) {
	set := cloneSet(3)
	w := start(t, cluster.Options{}, set, spread(upTo("a", number(2)), unlimited("b")))
	w.play()
	assert.Equal(t, map[string]string{"web-0": "a", "web-1": "a", "web-2": "b"}, w.subsets())
	w.remove("web-0")
	assert.Equal(t, whatif.Subset{Name: "a", Pods: 1, Limit: 2, Missing: 1}, w.state().Subsets[0])
	require.NotNil(t, w.pod("web-0"), "it still terminates")
	w.play()
	assert.Equal(t, map[string]string{"web-1": "a", "web-2": "b", "web-3": "a"}, w.subsets())

	w.remove("web-1")
	_, err := w.Create(cluster.OperatorActor, pod(set, 4))
	require.NoError(t, err)
	assert.Equal(t, "a", subsetOf(w.pod("web-4")), "at the same moment")
}

func TestTheLastSubsetGoesFirst(t *testing.T) {
	w := start(t, cluster.Options{}, cloneSet(0), spread(upTo("a", number(2)), upTo("b", number(2)), unlimited("c")))
	w.scale(6)
	assert.Equal(t, map[string]string{"web-0": "a", "web-1": "a", "web-2": "b", "web-3": "b", "web-4": "c", "web-5": "c"}, w.subsets())
	assert.Equal(t, []int{300, 200, 100}, []int{costOf(w.pod("web-0")), costOf(w.pod("web-2")), costOf(w.pod("web-4"))})
	w.scale(3)
	assert.Equal(t, map[string]string{"web-0": "a", "web-1": "a", "web-2": "b"}, w.subsets())
	w.scale(5)
	assert.Equal(t, "a 2/2, b 2/2, c 1", w.state().Status.Distribution)
}

// The limit of a subset falls: its pods beyond that go before all others.
func TestCostsFollowTheSpread(t *testing.T) {
	s := spread(upTo("a", number(2)), unlimited("b"))
	w := start(t, cluster.Options{}, cloneSet(3), s)
	w.play()
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", s, func(s *v1beta1.WorkloadSpread) { s.Spec.Subsets[0].MaxReplicas = new(number(1)) }))
	w.play()
	negative := 0
	for _, pod := range w.Pods() {
		if costOf(pod) < 0 {
			negative++
			assert.Equal(t, "a", subsetOf(pod))
		}
	}
	assert.Equal(t, 1, negative)
	assert.Equal(t, whatif.Subset{Name: "a", Pods: 2, Limit: 1, Missing: 0}, w.state().Subsets[0])
	assert.Empty(t, w.Latest(s).(*v1beta1.WorkloadSpread).Status, "it is kept elsewhere")
}

func TestASpreadThatIsDeletedLeavesItsPods(t *testing.T) {
	s := spread(upTo("a", number(2)), unlimited("b"))
	w := start(t, cluster.Options{}, cloneSet(2), s)
	w.play()
	assert.Equal(t, 200, costOf(w.pod("web-0")))
	require.NoError(t, w.Delete(cluster.UserActor, s))
	w.play()
	assert.NotContains(t, w.pod("web-0").Annotations, contract.PodDeletionCostAnnotation)
	assert.Empty(t, w.spreads.States())

	_, err := w.Create(cluster.UserActor, spread(upTo("a", number(3)), unlimited("b")))
	require.NoError(t, err)
	w.scale(4)
	assert.Equal(t, map[string]string{"web-0": "a", "web-1": "a", "web-2": "a", "web-3": "b"}, w.subsets(), "another one of its name continues")
	assert.Equal(t, 200, costOf(w.pod("web-0")))
}

func TestRunningPodsComeIntoTheSubsetOfTheirNode(t *testing.T) {
	set, subset := cloneSet(1), upTo("a", number(2))
	subset.RequiredNodeSelector = &corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "node", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-0"}},
	}}
	running := pod(set, 0)
	gen.OnNode("node-0")(running)
	gen.Ready(gen.Epoch())(running)
	w := start(t, cluster.Options{}, set, running, spread(subset, unlimited("b")))
	w.AddNodes(2)
	assert.Empty(t, subsetOf(w.pod("web-0")))
	w.play()
	assert.Equal(t, map[string]string{"web-0": "a"}, w.subsets())
	assert.Positive(t, w.Writes(whatif.Actor))
	assert.Equal(t, whatif.Subset{Name: "a", Pods: 1, Limit: 2, Missing: 1}, w.state().Subsets[0])
}

// No node takes the pods of subset a.
func TestPodsThatCannotBeScheduledGoElsewhere(t *testing.T) {
	s := spread(upTo("a", number(2)), unlimited("b"))
	s.Spec.ScheduleStrategy = v1beta1.WorkloadSpreadScheduleStrategy{
		Type: v1beta1.AdaptiveStrategy, Adaptive: &v1beta1.AdaptiveSettings{RescheduleCriticalSeconds: new(int32(30))},
	}
	w := start(t, cluster.Options{Unschedulable: func(pod *corev1.Pod) bool { return subsetOf(pod) == "a" }}, cloneSet(0), s)
	run := func(d time.Duration) { // the operator of the CloneSet works all the time
		for until := w.Now().Add(d); w.Now().Before(until); w.Advance(time.Second) {
			w.pass()
		}
	}
	w.replicas(2)
	run(20 * time.Second)
	assert.Equal(t, map[string]string{"web-0": "a", "web-1": "a"}, w.subsets())
	assert.False(t, w.state().Subsets[0].Closed)
	run(20 * time.Second)
	assert.Equal(t, []whatif.Subset{{Name: "a", Limit: 2, Missing: 2, Closed: true}, {Name: "b", Pods: 2, Limit: -1, Missing: -1}}, w.state().Subsets)
	w.play()
	assert.False(t, w.state().Subsets[0].Closed, "it opens again after a pause")
}

func TestADryRunTakesNoPlace(t *testing.T) {
	set := cloneSet(1)
	w := start(t, cluster.Options{}, set, spread(upTo("a", number(1))))
	require.NoError(t, w.DryRun(func() (action.Object, error) { return w.Create(cluster.OperatorActor, pod(set, 7)) }))
	assert.Equal(t, 1, w.state().Subsets[0].Missing)
	w.create(set, 1)
	assert.Equal(t, map[string]string{"web-0": "a"}, w.subsets())
}

// The quota refuses a pod that has got the only place of subset a.
func TestARefusedPodHoldsItsPlace(t *testing.T) {
	s := spread(upTo("a", number(1)), unlimited("b"))
	for name, c := range map[string]struct {
		then func(*app)
		want string
	}{
		"for a moment":     {func(w *app) { w.Advance(10 * time.Second) }, "b"},
		"and not for long": {func(w *app) { w.Advance(time.Minute) }, "a"},
		"in a spread, and not in the next one": {func(w *app) {
			require.NoError(w.t, w.Delete(cluster.UserActor, s))
			_, err := w.Create(cluster.UserActor, s)
			require.NoError(w.t, err)
		}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			set := cloneSet(2)
			refuses := true
			w := start(t, cluster.Options{Admission: func(_ *cluster.World, e cluster.Event) error {
				if refuses && e.Kind == "Pod" {
					return errors.New("quota")
				}
				return nil
			}}, set, s)
			_, err := w.Create(cluster.OperatorActor, pod(set, 7))
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			refuses = false
			c.then(w)
			w.create(set, 1)
			assert.Equal(t, map[string]string{"web-0": c.want}, w.subsets())
		})
	}
}

func TestEditsOfTheWorkloadCount(t *testing.T) {
	w := start(t, cluster.Options{}, cloneSet(4), spread(upTo("a", intstr.FromString("50%")), unlimited("b")))
	assert.Equal(t, 2, w.state().Subsets[0].Limit)
	w.replicas(8)
	assert.Equal(t, 4, w.state().Subsets[0].Limit)
}

func TestAPatchThatDoesNotFitRefusesThePod(t *testing.T) {
	manifest, err := fs.ReadFile(config.Files, "webhook/mutating.yaml")
	require.NoError(t, err)
	set := cloneSet(1)
	w := start(t, cluster.Options{}, set, spread(patched(unlimited("a"), `{"metadata":{"labels":{"app":"other"}}}`)))
	_, err = w.Create(cluster.OperatorActor, pod(set, 0))
	require.EqualError(t, err, `admission webhook "mpod.spread.kb.io" denied the request: WorkloadSpread web: apply the patch of subset a: `+
		`changes metadata.labels[app]: the workload finds its pods by these fields`)
	assert.True(t, apierrors.IsBadRequest(err))
	assert.Contains(t, string(manifest), "\n- name: mpod.spread.kb.io\n")
	assert.Equal(t, 1, w.state().Unplaced)
	assert.Empty(t, w.Pods())
}

func TestPodsOfOthersStayAsTheyAre(t *testing.T) {
	set := cloneSet(1)
	other := cloneSet(1)
	other.SetName("db")
	other.SetUID("of-db")
	foreign := pod(set, 0)
	foreign.Namespace = metav1.NamespaceSystem
	alone := pod(set, 1)
	alone.OwnerReferences = nil
	w := start(t, cluster.Options{}, set, other, spread(unlimited("a")))
	for _, pod := range []*corev1.Pod{foreign, alone, pod(other, 2)} {
		_, err := w.Create(cluster.OperatorActor, pod)
		require.NoError(t, err)
		assert.Empty(t, subsetOf(cluster.Get[*corev1.Pod](w.View(nil), pod.Namespace, pod.Name)), pod.Name)
	}
	w.Advance(time.Minute)
	assert.Equal(t, []whatif.Subset{{Name: "a", Limit: whatif.Unlimited, Missing: whatif.Unlimited}}, w.state().Subsets)
}
