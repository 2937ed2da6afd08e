package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// The worked examples: which nodes take part, in their order.
func TestNodesThatTakePart(t *testing.T) {
	cases := []struct {
		name  string
		given *world
		want  string
	}{
		{"updated first", given(t, 3).old("n1 n3").updated("n2"), "n2 n3 n1"},
		{"partition", given(t, 3, partition("1")).updated("n1").old("n2 n3"), "n1 n3"},
		{"partition and selector", given(t, 4, partition("1"), onNodes("n3")).old("n1 n3 n4").updated("n2"), "n2 n3"},
		{"two stay", given(t, 4, partition("2"), onNodes("n1", "n3", "n4")).old("n1 n3 n4").updated("n2"), "n2 n4"},
		{"one in the middle of it", given(t, 4, onNodes("n1", "n3")).old("n1 n4").old("n3", terminating).updated("n2"), "n2 n3 n1"},
		{"an empty selector matches all", given(t, 2, rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.Selector = &metav1.LabelSelector{} })).old("n1 n2"), "n2 n1"},
		{"percentages are rounded down", given(t, 10, partition("25%")).old("n1 n2 n3 n4 n5 n6 n7 n8 n9 n10"), "n9 n8 n7 n6 n5 n4 n3 n2"},
		{"all stay", given(t, 2, partition("100%")).old("n1 n2"), ""},
		{"nodes without a pod", given(t, 2).old("n1"), "n2 n1"},
		{"nodes that are gone do not", given(t, 2).gone("n2").old("n1 n2"), "n1"},
		{"nodes that must not run it do", given(t, 2).node("n2", tainted(corev1.TaintEffectNoExecute)).old("n1 n2"), "n2 n1"},
		{"reverting, what leaves the selector leaves the update", given(t, 3, reverting, onNodes("n1")).updated("n1 n2").old("n3"), "n1"},
		{"two old pods are no update", given(t, 3, reverting, maxSurge("1"), partition("1")).updated("n1 n3").old("n2", gen.SpecifiedDelete()).old("n2", down), "n3 n1"},
		{"nor is one that goes and its old successor", given(t, 2, reverting, maxSurge("1"), partition("1"), hooked).old("n1", gen.SpecifiedDelete(), preparing, hookOn).old("n1 n2"), "n2"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			for _, l := range newPass(c.given.snapshot()).inRange {
				names = append(names, l.name)
			}
			assert.Equal(t, c.want, strings.Join(names, " "))
		})
	}
}

func TestNodesThatMustNotRunItCanBePruned(t *testing.T) {
	w := given(t, 3).node("n3", tainted(corev1.TaintEffectNoExecute)).old("n1 n2").old("n3", terminating)
	assert.Empty(t, w.did(), "its going uses up maxUnavailable")
	w.featureGates.PruneIneligibleNodes = true
	assert.Equal(t, []string{"delete n2"}, w.did())
}

func TestRollingUpdates(t *testing.T) {
	none := []string{}
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"as many as may be unavailable", given(t, 5, maxUnavailable("3")).old("n1 n2 n3 n4 n5"), []string{"delete n5", "delete n4", "delete n3"}},
		{"rounded up", given(t, 3, maxUnavailable("50%")).old("n1 n2 n3"), []string{"delete n3", "delete n2"}},
		{"both zero is one", given(t, 2, maxUnavailable("0")).old("n1 n2"), []string{"delete n2"}},
		{"the default is one", given(t, 2, rolling(func(r *v1beta1.RollingUpdateDaemonSet) { r.MaxUnavailable = nil })).old("n1 n2"), []string{"delete n2"}},
		{"a new pod that is not available counts", given(t, 3).old("n1 n2").updated("n3", down), none},
		{"and one that is too young", given(t, 3, minReady(10)).old("n1 n2").updated("n3", young), none},
		{"and a node without a pod", given(t, 3).old("n1 n2"), []string{"create n3"}},
		{"and one that terminates", given(t, 3).old("n1 n2").old("n3", terminating), none},
		{"old pods that are not ready go at once", given(t, 5, maxUnavailable("3")).old("n1 n2 n3 n4 n5", down), []string{"delete n5", "delete n4", "delete n3", "delete n2", "delete n1"}},
		{"and count", given(t, 5, maxUnavailable("2")).old("n1 n2", down).old("n3 n4 n5"), []string{"delete n2", "delete n1"}},
		{"so that less is left for others", given(t, 5, maxUnavailable("2")).old("n1", down).old("n2 n3 n4 n5"), []string{"delete n1", "delete n5"}},
		{"old ones that are ready and too young count, and one may go in their place", given(t, 5, minReady(10)).old("n1", young).old("n2 n3 n4 n5"), []string{"delete n1"}},
		{"never all of them", given(t, 5, minReady(10)).old("n1 n2 n3 n4 n5", young), []string{"delete n5"}},
		{"none while one is down", given(t, 5, minReady(10)).old("n1 n2 n3 n4", young).updated("n5", down), none},
		{"two of them", given(t, 5, minReady(10), maxUnavailable("2")).old("n1 n2 n3 n4", young).updated("n5", down), []string{"delete n4"}},
		{"paused", given(t, 2, pausing(true)).old("n1").old("n2", down), none},
		{"OnDelete", given(t, 2, deleting).old("n1").old("n2", down), none},
		{"what the partition keeps stays, however it is", given(t, 3, partition("2")).old("n1", down).old("n2 n3"), []string{"delete n3"}},
		{"and does not count", given(t, 3, partition("2")).old("n1 n2", down).old("n3"), []string{"delete n3"}},
		{"what is specified uses up the same budget", given(t, 4, partition("2")).old("n1", gen.SpecifiedDelete()).old("n2 n3 n4"), []string{"delete n1"}},
		{"also where the selector does not reach it", given(t, 4, onNodes("n3", "n4")).old("n1", gen.SpecifiedDelete()).old("n2 n3 n4"), []string{"delete n1"}},
		{"and leaves what it does not use", given(t, 4, partition("2"), maxUnavailable("2")).old("n1", gen.SpecifiedDelete()).old("n2 n3 n4"), []string{"delete n1", "delete n4"}},
		{"what leaves the selector stays", given(t, 3, onNodes("n1")).old("n1 n3").updated("n2"), []string{"delete n1"}},
		{"burst", given(t, 5, burst("2"), maxUnavailable("3")).old("n1 n2 n3 n4 n5"), []string{"delete n5", "delete n4"}},
		{"an equal template is the same revision", given(t, 1).updated("n1"), none},
		{"pods on nodes that must not run it are updated, too", given(t, 2).node("n2", tainted(corev1.TaintEffectNoSchedule)).old("n1 n2"), []string{"delete n2"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
}

// Nodes that are tainted or lost take part as before: a canary stays as large as it is.
func TestAPartitionIsAShareOfTheNodesThatTakePart(t *testing.T) {
	lost := func(n *corev1.Node) {
		notReady(time.Minute)(n)
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}}
	}
	for _, change := range []struct {
		name   string
		change nodeOption
		pod    []gen.PodOption
	}{{"tainted", tainted(corev1.TaintEffectNoSchedule), nil}, {"lost", lost, []gen.PodOption{down}}} {
		for _, kept := range []string{"80%", "8"} {
			for n := range 11 {
				w := given(t, 0, partition(kept), maxUnavailable("100%"))
				for i := range 10 {
					name, r, options := fmt.Sprintf("n%d", i), w.revisions[0], []gen.PodOption(nil)
					w.node(name)
					if i >= 8 {
						r = w.revisions[1]
					}
					if i < n {
						w.node(name, change.change)
						options = change.pod
					}
					w.add(r, name, options)
				}
				assert.Empty(t, w.did(), "%d of 10 nodes %s, partition %s", n, change.name, kept)
			}
		}
	}
}

func TestSurges(t *testing.T) {
	none := []string{}
	all := "n1 n2 n3 n4 n5"
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"as many as maxSurge says", given(t, 5, maxSurge("2")).old(all), []string{"create n5", "create n4"}},
		{"rounded up", given(t, 5, maxSurge("25%")).old(all), []string{"create n5", "create n4"}},
		{"all at once", given(t, 2, maxSurge("100%")).old("n1 n2"), []string{"create n2", "create n1"}},
		{"none while two wait", given(t, 5, maxSurge("2")).old(all).updated("n4 n5", down), none},
		{"once these are available", given(t, 5, maxSurge("2")).old(all).updated("n4 n5"), []string{"delete n4", "delete n5"}},
		{"and the old ones are about to go", given(t, 5, maxSurge("2")).old("n1 n2 n3").old("n4 n5", terminating).updated("n4 n5"), []string{"create n3", "create n2"}},
		{"beside those that are not ready at once", given(t, 5, maxSurge("3")).old(all, down), []string{"create n5", "create n4", "create n3", "create n2", "create n1"}},
		{"one that is ready and too young waits for its turn", given(t, 2, maxSurge("1"), minReady(10)).old("n1 n2", young), []string{"create n2"}},
		{"an old one stays for minReadySeconds of the new one", given(t, 1, maxSurge("1"), minReady(10)).old("n1").updated("n1", young), none},
		{"beside a failed successor that may not go yet none comes", given(t, 1, maxSurge("1")).old("n1").updated("n1", failed).retryLater("n1"), none},
		{"nor beside several", given(t, 1, maxSurge("1")).old("n1", down).updated("n1 n1 n1", failed).retryLater("n1"), none},
		{"it makes room first", given(t, 1, maxSurge("1")).old("n1").updated("n1", failed), []string{"delete n1"}},
		{"and counts as a second pod", given(t, 2, maxSurge("1")).old("n1 n2").updated("n2", failed).retryLater("n2"), none},
		{"one that its hook holds, too", given(t, 1, maxSurge("1"), hooked).updated("n1", failed, preparing).retryLater("n1"), none},
		{"paused", given(t, 2, maxSurge("1"), pausing(true)).old("n1 n2"), none},
		{"partition", given(t, 2, maxSurge("2"), partition("1")).old("n1 n2"), []string{"create n2"}},
		{"on a node that must not run it none comes, and none goes without need", given(t, 2, maxSurge("1")).node("n2", tainted(corev1.TaintEffectNoSchedule)).old("n2").updated("n1", down), none},
		{"one that is not ready goes", given(t, 2, maxSurge("1")).node("n2", tainted(corev1.TaintEffectNoSchedule)).old("n2", down).updated("n1", down), []string{"delete n2"}},
		{"and one that is one too many", given(t, 2, maxSurge("1")).node("n2", tainted(corev1.TaintEffectNoSchedule)).old("n2").updated("n1"), []string{"delete n2"}},
		{"the pod of a node that is gone stands in for none", given(t, 3, maxSurge("1")).node("n2", tainted(corev1.TaintEffectNoSchedule)).gone("n3").old("n2").updated("n1", down).old("n3"), none},
		{"a pod that its hook holds beside its successor uses up maxSurge", given(t, 2, maxSurge("1"), hooked).old("n1").old("n2", preparing, hookOn).updated("n2"), none},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
}

func TestUpdatesInPlace(t *testing.T) {
	none := []string{}
	noGate := gen.Change(func(o *corev1.Pod) { o.Spec.ReadinessGates = nil })
	held := gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now)
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"one node after the other", given(t, 3, inPlace).old("n1 n2 n3"), []string{"update n3"}},
		{"those that are not ready at once", given(t, 3, inPlace).old("n1", down).old("n2").old("n3", down), []string{"update n3", "update n1"}},
		{"without readiness gate a new pod", given(t, 1, inPlace).old("n1", noGate), []string{"delete n1"}},
		{"of an unknown revision, too", given(t, 1, inPlace).old("n1", gen.Revision("forgotten")), []string{"delete n1"}},
		{"one that is being updated counts", given(t, 3, inPlace).old("n1 n2").updated("n3", held), none},
		{"burst", given(t, 3, inPlace, maxUnavailable("3"), burst("2")).old("n1 n2 n3"), []string{"update n3", "update n2"}},
		{"Standard replaces", given(t, 1).old("n1"), []string{"delete n1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
}

// What manage has left nothing of the burst for comes with the next pass.
func TestUpdatesThatTheBurstLeavesOutComeBack(t *testing.T) {
	todo := given(t, 2, burst("1"), maxUnavailable("2")).updated("n1", failed).old("n2", down).plan()
	require.Len(t, todo.Steps, 1)
	assert.True(t, todo.Steps[0].More)
}

// A successor of one that its hook holds uses up maxSurge in the pass that makes it, and waits for its turn.
func TestSuccessorsOfHeldPodsUseUpMaxSurge(t *testing.T) {
	assert.Equal(t, []string{"create n2"}, given(t, 3, maxSurge("1"), hooked).old("n1 n3").old("n2", preparing, hookOn).did())
	assert.Empty(t, given(t, 2, maxSurge("1"), hooked).old("n1", preparing, hookOn).old("n2", preparing, hookOn).updated("n2", down).did())
	assert.Equal(t, []string{"create n1"}, given(t, 2, maxSurge("1"), hooked).old("n1", preparing, hookOn, down).old("n2", preparing, hookOn).updated("n2", down).did())
}

// A node that takes no part in the update for now keeps what it has.
func TestPrunedNodesDoNotReturn(t *testing.T) {
	w := given(t, 2, reverting, maxSurge("1")).updated("n1").old("n2", down).updated("n2", down).node("n2", tainted(corev1.TaintEffectNoSchedule))
	w.featureGates.PruneIneligibleNodes = true
	assert.Equal(t, []string{"web-n2-1"}, w.deleted(), "the old one")
}

func TestAPodThatIsAdoptedUsesUpMaxSurge(t *testing.T) {
	w := given(t, 2, maxSurge("1")).old("n1 n2")
	orphan := w.pod(w.revisions[0], "n2")
	orphan.OwnerReferences = nil
	w.orphans = append(w.orphans, orphan)
	assert.Empty(t, w.did())
}

func TestUpdatesInPlaceThatAreLeftOutComeBack(t *testing.T) {
	todo := given(t, 3, inPlace, maxUnavailable("3"), burst("1")).old("n1 n2 n3").plan()
	last := todo.Steps[len(todo.Steps)-1]
	assert.True(t, last.More)
	assert.Len(t, last.Actions, 1)
}

func TestUpdatesInPlaceRecordTheShortHash(t *testing.T) {
	w := given(t, 1, inPlace).old("n1")
	for a := range judges.Actions(w.plan().Steps, stepUpdate) {
		value, _ := judges.LabelIn(a, contract.RevisionLabel)
		assert.Equal(t, revision.Hash(w.revisions[1]), value)
		meta := a.Patches[len(a.Patches)-1].Body["metadata"].(map[string]any)
		assert.Contains(t, meta["annotations"].(map[string]any)[contract.InPlaceUpdateStateAnnotation], `"revision":"`+revision.Hash(w.revisions[1])+`"`)
		return
	}
	t.Fatal("no update")
}

// What changes in place and what does not, besides images.
func TestWhatChangesInPlace(t *testing.T) {
	cpu := func(quantity string) setOption {
		return func(s *v1beta1.DaemonSet) {
			s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
		}
	}
	cases := []struct {
		name          string
		before, after setOption
		resize        bool
		want          []string
	}{
		{"cpu", cpu("1"), cpu("2"), true, []string{"update n1"}},
		{"cpu where it cannot be resized", cpu("1"), cpu("2"), false, []string{"delete n1"}},
		{"a label", func(*v1beta1.DaemonSet) {}, func(s *v1beta1.DaemonSet) { s.Spec.Template.Labels["a"] = "b" }, false, []string{"update n1"}},
		{"an environment variable", func(*v1beta1.DaemonSet) {}, func(s *v1beta1.DaemonSet) {
			s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
		}, false, []string{"delete n1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := given(t, 1, inPlace, c.before)
			w.featureGates.Resize = c.resize
			w.revisions[0] = w.revision(w.set.Spec.Template, 1)
			c.after(w.set)
			w.revisions[1] = w.revision(w.set.Spec.Template, 2)
			assert.Equal(t, c.want, w.old("n1").did())
		})
	}
}

// A node agent tells about a container within seconds of its start, and not at once.
func TestUpdatesInPlaceWaitForTheNodeAgentOfNewContainers(t *testing.T) {
	for ago, want := range map[time.Duration][]string{2 * time.Second: {}, time.Minute: {"delete n1"}} {
		w := given(t, 1, inPlace, func(s *v1beta1.DaemonSet) { scenarios.ReadConfig(&s.Spec.Template.Spec) })
		w.featureGates.EnvFromMetadata = true
		w.revisions[0] = w.revision(w.set.Spec.Template, 1)
		w.set.Spec.Template.Annotations = map[string]string{scenarios.ConfigAnnotation: "2"}
		w.revisions[1] = w.revision(w.set.Spec.Template, 2)
		w.old("n1", gen.Change(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}
		}))
		assert.Equal(t, want, w.did(), ago)
		assert.Equal(t, ago < time.Minute, slices.Contains(w.waits(), "NodeAgentMissing"), ago)
	}
}

func TestSpecifiedPodsAreReplaced(t *testing.T) {
	named := gen.SpecifiedDelete()
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"one by one", given(t, 3).updated("n1").updated("n2 n3", named), []string{"delete n3"}},
		{"not while another is down", given(t, 3).updated("n1", down).updated("n2 n3", named), []string{}},
		{"those that are down at once", given(t, 3).updated("n1").updated("n2 n3", named, down), []string{"delete n3", "delete n2"}},
		{"while paused", given(t, 2, pausing(true)).updated("n1").updated("n2", named), []string{"delete n2"}},
		{"with OnDelete", given(t, 2, deleting).old("n1").old("n2", named), []string{"delete n2"}},
		{"below the partition", given(t, 2, partition("2")).old("n1", named).old("n2"), []string{"delete n1"}},
		{"in a surge its successor comes first", given(t, 2, maxSurge("1")).updated("n1").updated("n2", named), []string{"create n2"}},
		{"and it goes then", given(t, 2, maxSurge("1")).updated("n1").updated("n2", named).updated("n2", created(time.Minute)), []string{"delete n2"}},
		{"never in place", given(t, 1, inPlace).old("n1", named), []string{"delete n1"}},
		{"before what the update wants", given(t, 3).old("n1", named).old("n2 n3"), []string{"delete n1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
}

func TestPreDeleteHooks(t *testing.T) {
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"hold one that is to be updated", given(t, 3, hooked).old("n1 n2 n3", hookOn), []string{"hold n3"}},
		{"and no other goes meanwhile", given(t, 3, hooked).old("n1 n2", hookOn).old("n3", hookOn, preparing), []string{}},
		{"until it is released", given(t, 3, hooked).old("n1 n2", hookOn).old("n3", preparing), []string{"delete n3"}},
		{"hold one on a node that must not run it", given(t, 1, hooked).node("n1", tainted(corev1.TaintEffectNoExecute)).updated("n1", hookOn), []string{"hold n1"}},
		{"and failed ones", given(t, 1, hooked).updated("n1", hookOn, failed), []string{"hold n1"}},
		{"and those too many", given(t, 1, hooked).updated("n1").updated("n1", hookOn), []string{"hold n1"}},
		{"with a finalizer", given(t, 1, func(s *v1beta1.DaemonSet) {
			hooked(s)
			s.Spec.Lifecycle.PreDelete.FinalizersHandler = []string{"example.io/hook"}
		}).old("n1", gen.Finalizer("example.io/hook")), []string{"hold n1"}},
		{"do not hold updates in place", given(t, 1, hooked, inPlace).old("n1", hookOn), []string{"update n1"}},
		{"the way back once the node may keep it", given(t, 1, hooked).updated("n1", hookOn, preparing), []string{"normal n1"}},
		{"the way back once nothing is to be updated", given(t, 1, hooked, deleting).old("n1", hookOn, preparing), []string{"normal n1"}},
		{"the way back once it can be updated in place", given(t, 1, hooked, inPlace).old("n1", hookOn, preparing), []string{"normal n1"}},
		{"no way back for one that a user wants gone", given(t, 1, hooked).updated("n1", hookOn, preparing, gen.SpecifiedDelete()), []string{}},
		{"nor from a node that must not run it", given(t, 1, hooked).node("n1", tainted(corev1.TaintEffectNoExecute)).updated("n1", hookOn, preparing), []string{}},
		{"nor beside another one", given(t, 1, hooked).updated("n1").updated("n1", hookOn, preparing), []string{}},
		{"but before one that is no longer wanted", given(t, 1, hooked, maxSurge("1")).old("n1").updated("n1", hookOn, preparing), []string{"normal n1"}},
		{"a pause leaves it where it is", given(t, 1, hooked, pausing(true)).old("n1", hookOn, preparing), []string{}},
		{"and takes it back once it is released", given(t, 1, hooked, pausing(true)).old("n1", preparing), []string{"normal n1"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
	w := given(t, 3, hooked).old("n1 n2", hookOn).old("n3", hookOn, preparing)
	assert.Contains(t, w.waits(), podupdate.WaitPreDeleteHook)
}

func TestHooksCanTakePodsOutOfService(t *testing.T) {
	marks := func(s *v1beta1.DaemonSet) {
		hooked(s)
		s.Spec.Lifecycle.PreDelete.MarkPodNotReady = true
	}
	w := given(t, 1, marks).old("n1", hookOn, gen.ReadinessGate(contract.KruisePodReady), gen.Condition(contract.KruisePodReady, corev1.ConditionTrue, now))
	todo := w.plan()
	require.Equal(t, 1, todo.Count(action.PatchStatus))
	for _, n := range todo.Notices {
		assert.NotEqual(t, EventGateMissing, n.Reason)
	}
	assert.Equal(t, EventGateMissing, given(t, 1, marks).old("n1", hookOn).plan().Notices[0].Reason)

	out := gen.Change(func(o *corev1.Pod) {
		c := &o.Status.Conditions[slices.IndexFunc(o.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == contract.KruisePodReady })]
		c.Status, c.Message = corev1.ConditionFalse, `[{"userAgent":"Lifecycle","key":"preDeleteHook"}]`
	})
	back := given(t, 1, marks).updated("n1", hookOn, preparing, gen.ReadinessGate(contract.KruisePodReady), gen.Condition(contract.KruisePodReady, corev1.ConditionTrue, now), out)
	todo = back.plan()
	require.Equal(t, []string{"normal n1"}, back.did())
	require.Equal(t, 1, todo.Count(action.PatchStatus), "one write takes it back into service and says so")
	for a := range judges.Actions(todo.Steps, "") {
		require.Len(t, a.Patches, 1)
		status := a.Patches[0].Body["status"].(map[string]any)
		assert.Contains(t, fmt.Sprint(status["conditions"]), "True")
		assert.NotContains(t, fmt.Sprint(status["conditions"]), contract.PreDeleteHookKey)
	}
	todo = given(t, 1, hooked).updated("n1", hookOn, preparing).plan()
	assert.Equal(t, 1, todo.Count(action.PatchMetadata), "the hook has left it in service")
}

// With policy Revert, selector and partition work both ways.
func TestNodesThatTheUpdateLeavesOutReturn(t *testing.T) {
	cases := []struct {
		name  string
		given *world
		want  []string
	}{
		{"from a raised partition", given(t, 4, reverting, partition("2")).old("n1").updated("n2 n3 n4"), []string{"delete n2"}},
		{"and are created anew at the revision before", given(t, 3, reverting, partition("2")).updated("n1 n3"), []string{"create n2 old"}},
		{"in place", given(t, 4, reverting, inPlace, partition("2")).old("n1").updated("n2 n3 n4"), []string{"update n2"}},
		{"within maxUnavailable", given(t, 3, reverting, partition("3")).updated("n1 n2").old("n3", down), []string{}},
		{"from the selector", given(t, 3, reverting, onNodes("n1")).updated("n1 n2").old("n3"), []string{"delete n2"}},
		{"new nodes too", given(t, 2, reverting, onNodes("n1")).updated("n1"), []string{"create n2 old"}},
		{"in a surge", given(t, 3, reverting, maxSurge("1"), onNodes("n1")).updated("n1 n2").old("n3"), []string{"create n2 old"}},
		{"and the updated one goes", given(t, 2, reverting, maxSurge("1"), onNodes("n1")).updated("n1 n2").old("n2", created(time.Minute)), []string{"delete n2"}},
		{"what is older stays", given(t, 2, reverting, onNodes("n1")).updated("n1").old("n2", gen.Revision("older")), []string{}},
		{"not once all nodes had the revision", given(t, 3, reverting, partition("2")).updated("n1 n2 n3"), []string{}},
		{"the default leaves them", given(t, 2, onNodes("n1")).updated("n1 n2"), []string{}},
		{"not while paused", given(t, 3, reverting, pausing(true), onNodes("n1")).updated("n1 n2").old("n3"), []string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.given.did()) })
	}
	orphaned := given(t, 2, reverting, onNodes("n1")).updated("n1")
	s := orphaned.snapshot()
	s.Revisions, s.OrphanRevisions = orphaned.revisions[1:], orphaned.revisions[:1]
	s.Set.Status.CurrentRevision = revision.Hash(orphaned.revisions[0])
	for a := range judges.Actions(Compute(s).Steps, stepCreate) {
		assert.Equal(t, s.Set.Status.CurrentRevision, a.Object.GetLabels()[contract.RevisionLabel], "the set adopts the revision in the same pass")
	}
	w := given(t, 2, reverting, onNodes("n1"), func(s *v1beta1.DaemonSet) { s.Spec.RevisionHistoryLimit = new(int32) }).updated("n1")
	todo := w.plan()
	assert.Zero(t, todo.Count(action.Delete), "the revision to return to is kept")
}

func TestUnreadyNodesAndTheUpdate(t *testing.T) {
	lost := func(policy v1beta1.UnreadyNodePolicy, ago time.Duration) *world {
		w := given(t, 3, unready(policy)).node("n3", notReady(ago)).old("n1 n2").updated("n3", down)
		w.set.Status.UpdateRevision, w.set.Status.UpdateStartTime = revision.Hash(w.revisions[1]), &metav1.Time{Time: now.Add(-time.Minute)}
		return w
	}
	assert.Empty(t, lost("", time.Hour).did())
	assert.Empty(t, lost(v1beta1.CountUnreadyNodes, time.Hour).did())
	assert.Equal(t, []string{"delete n2"}, lost(v1beta1.SkipUnreadyNodes, time.Second).did())
	assert.Equal(t, []string{"delete n2"}, lost(v1beta1.SkipNodesUnreadyBeforeUpdate, time.Hour).did())
	assert.Empty(t, lost(v1beta1.SkipNodesUnreadyBeforeUpdate, time.Second).did(), "the update may be why")
	dead := lost(v1beta1.SkipNodesUnreadyBeforeUpdate, time.Second)
	dead.unready = map[string]time.Time{"n3": now.Add(-time.Hour)}
	assert.Equal(t, []string{"delete n2"}, dead.did(), "it had not been ready before, and now its condition is another one")

	status := lost(v1beta1.SkipUnreadyNodes, time.Hour).status()
	assert.EqualValues(t, 1, status.NumberUnreadyNodes)
	assert.EqualValues(t, 1, status.NumberSkippedNodes)
	status = lost(v1beta1.CountUnreadyNodes, time.Hour).status()
	assert.EqualValues(t, 1, status.NumberUnreadyNodes)
	assert.Zero(t, status.NumberSkippedNodes)

	surging := lost(v1beta1.SkipUnreadyNodes, time.Hour)
	maxSurge("1")(surging.set)
	surging.old("n3")
	assert.Equal(t, []string{"create n2"}, surging.did())
}

func TestASpecThatCannotBeFollowedChangesNoPod(t *testing.T) {
	for name, change := range map[string]setOption{
		"maxUnavailable": maxUnavailable("abc"),
		"partition":      partition("abc"),
		"selector":       onNodes(),
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, 2, change).old("n1", failed)
			require.Error(t, w.plan().Err)
			assert.Empty(t, w.did())
			status := w.status()
			for _, c := range status.Conditions {
				if c.Type == v1beta1.DaemonSetProgressing {
					assert.Equal(t, v1beta1.ReasonInvalidSpec, c.Reason)
				}
			}
		})
	}
}

// A paused set takes a pod back whose hook has let go for the update; nobody would go on with it.
func TestAPauseTakesBackPodsWhoseHookHasLetGo(t *testing.T) {
	for name, tt := range map[string]struct {
		options []gen.PodOption
		want    []string
	}{
		"let go":                 {[]gen.PodOption{preparing}, []string{"normal n1"}},
		"held":                   {[]gen.PodOption{preparing, hookOn}, []string{}},
		"specified for deletion": {[]gen.PodOption{preparing, gen.SpecifiedDelete()}, []string{"delete n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, given(t, 1, hooked, pausing(true)).old("n1", tt.options...).did())
		})
	}
	assert.Equal(t, []string{"delete n1"}, given(t, 1, hooked).old("n1", preparing).did())
}
