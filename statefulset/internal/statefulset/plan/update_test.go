package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

func marked() gen.PodOption { return gen.SpecifiedDelete() }

func byWeight(weights map[string]int32) *workload.UpdatePriorityStrategy {
	p := &workload.UpdatePriorityStrategy{}
	for value, weight := range weights {
		p.WeightPriority = append(p.WeightPriority, workload.UpdatePriorityWeightTerm{
			Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"k": value}},
		})
	}
	return p
}

// The order of the update: the specification's table.
func TestTargetsOfTheUpdate(t *testing.T) {
	rows := []struct {
		name  string
		world *world
		want  []int32
	}{
		{"no setting", given(t, 3).old(span(0, 2)), at(2, 1, 0)},
		{"reserved, partition 2", given(t, 3, reserved(1, 3), partition(2)).old(at(0, 2, 4)), at(4)},
		{"partition is no ordinal", given(t, 5, startAt(100), partition(3)).old(span(100, 104)), at(104, 103)},
		{"partition beyond replicas", given(t, 3, partition(9)).old(span(0, 2)), nil},
		{"unordered, 6 and 7 updated", given(t, 10, unorderedBy(nil), partition(6)).old(span(0, 5)).updated(span(6, 7)).old(span(8, 9)), at(7, 6, 9, 8)},
		{"unordered, one out of service", given(t, 3, unorderedBy(nil), partition(1)).old(at(0), unready).old(at(1, 2)), at(0, 2)},
		{"unordered, its priority is lower", given(t, 3, unorderedBy(byWeight(map[string]int32{"v1": 1})), partition(2)).old(at(0), unready).old(at(1), gen.Label("k", "v1")).old(at(2)), at(1)},
		{"unordered, reserved, 7 and 8 updated", given(t, 10, unorderedBy(nil), partition(6), reserved(3, 10)).old(at(0, 1, 2, 4, 5, 6)).updated(at(7, 8)).old(at(9, 11)), at(8, 7, 11, 9)},
		{"unordered, 0 and 1 prepared, with feature gate", given(t, 10, unorderedBy(nil), partition(6), reserved(3, 10), hooked()).
			withFeatureGates(func(g *FeatureGates) { g.PreparingUpdateAsUpdate = true }).
			old(at(0, 1), heldBefore(contract.LifecyclePreparingUpdate)).old(at(2, 4, 5, 6)).updated(at(7, 8)).old(at(9, 11)), at(8, 7, 1, 0)},
		{"unordered, missing ones count as updated", given(t, 4, unorderedBy(nil), partition(2)).old(at(0, 1, 2)), at(2)},
		{"unordered, terminating ones come back updated", given(t, 4, unorderedBy(nil), partition(2)).old(at(0), terminating).old(span(1, 3)), at(0, 3)},
		{"weights", given(t, 5, unorderedBy(byWeight(map[string]int32{"v1": 20, "v2": 10}))).
			old(at(0, 3), gen.Label("k", "v1")).old(at(1), gen.Label("k", "v2")).old(at(2, 4)), at(3, 0, 1, 4, 2)},
		{"order keys, those without one last", given(t, 5, unorderedBy(&workload.UpdatePriorityStrategy{OrderPriority: []workload.UpdatePriorityOrderTerm{{OrderedKey: "first"}, {OrderedKey: "second"}}})).
			old(at(0), gen.Label("first", "5")).old(at(1), gen.Label("first", "sts-10")).old(at(2)).
			old(at(3), gen.Label("second", "99")).old(at(4), gen.Label("first", "none")), at(1, 0, 4, 3, 2)},
		{"OnDelete", given(t, 3, onDeleteOnly()).old(span(0, 2)), nil},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var got []int32
			for _, o := range newPass(r.world.snapshot()).targets {
				got = append(got, o.ordinal)
			}
			assert.Equal(t, r.want, got)
		})
	}
}

func TestUpdatesKeepToMaxUnavailable(t *testing.T) {
	check(t, []row{
		{"one at a time by default", given(t, 3).old(span(0, 2)), []string{"delete 2"}},
		{"two of five", given(t, 5, maxUnavailable("2")).old(span(0, 4)), []string{"delete 4", "delete 3"}},
		{"a window, not batches", given(t, 5, maxUnavailable("2")).old(span(0, 2)).updated(at(3), unready).updated(at(4)), []string{"delete 2"}},
		{"minReadySeconds hold the window", given(t, 5, maxUnavailable("2"), minReady(5)).old(span(0, 2)).updated(span(3, 4), readySince(3*time.Second)), []string{}},
		{"all at once", given(t, 3, maxUnavailable("100%")).old(span(0, 2)), []string{"delete 2", "delete 1", "delete 0"}},
		{"more than all", given(t, 2, maxUnavailable("7")).old(span(0, 1)), []string{"delete 1", "delete 0"}},
		{"a small percentage is one", given(t, 3, maxUnavailable("1%")).old(span(0, 2)), []string{"delete 2"}},
		{"50% of 5 is 2", given(t, 5, maxUnavailable("50%")).old(span(0, 4)), []string{"delete 4", "delete 3"}},
		{"a terminating pod below the partition counts", given(t, 6, partition(3), maxUnavailable("2")).old(at(0), terminating).old(span(1, 5)), []string{"delete 5"}},
		{"two of them: nothing starts", given(t, 6, partition(3), maxUnavailable("2")).old(at(0, 2), terminating).old(at(1, 3, 4)).updated(at(5)), []string{}},
		{"a missing pod counts", given(t, 3).old(span(0, 1)), []string{"create 2"}},
		{"paused", given(t, 3, paused(true)).old(span(0, 2)), []string{}},
		{"OnDelete", given(t, 3, onDeleteOnly()).old(span(0, 2)), []string{}},
		{"the native place of minReadySeconds", given(t, 2, func(s *v1beta1.StatefulSet) { s.Spec.MinReadySeconds = 10 }).old(at(0)).updated(at(1), readySince(5*time.Second)), []string{}},
		{"in order, one by one from the highest", given(t, 3, inOrder()).old(span(0, 2)), []string{"delete 2"}},
		{"in order, after scaling in", given(t, 2, inOrder()).old(span(0, 2)), []string{"delete 2"}},
		{"in order, not while the removed one goes", given(t, 2, inOrder()).old(span(0, 1)).old(at(2), terminating), []string{}},
		{"in order, two at a time (kubernetes 1.35, kruise 2359)", given(t, 4, inOrder(), maxUnavailable("2")).old(span(0, 3)), []string{"delete 3", "delete 2"}},
	})
}

// W9, W10: what is broken is replaced first, for it costs nothing and may be what all others wait for.
func TestBrokenPodsAreReplacedFirst(t *testing.T) {
	check(t, []row{
		{"a broken pod behind available ones", given(t, 3).old(at(0), unready).old(at(1, 2)), []string{"delete 0"}},
		{"all broken, as many as may be", given(t, 3, maxUnavailable("2")).old(span(0, 2), unready), []string{"delete 2", "delete 1"}},
		{"while these go, no more", given(t, 3, maxUnavailable("2")).old(at(0), unready).old(at(1, 2), terminating), []string{}},
		{"nor while they come", given(t, 3, maxUnavailable("2")).old(at(0), unready), []string{"create 1", "create 2"}},
		{"nor while they start, or crash as well", given(t, 3, maxUnavailable("2")).old(at(0), unready).updated(at(1, 2), unready), []string{}},
		{"nor while one of it lacks a volume, and is made anew", given(t, 3, claimed("data")).updated(at(0), unready, withoutVolumes).old(at(1, 2), unready), []string{"delete 0"}},
		{"all of them once one has proven good", given(t, 5, maxUnavailable("2")).old(span(0, 2), unready).updated(at(3), unready).updated(at(4)), []string{"delete 2", "delete 1", "delete 0"}},
		{"but none of those that serve", given(t, 5).old(at(0)).old(span(1, 3), unready).updated(at(4)), []string{"delete 3", "delete 2", "delete 1"}},
		{"a missing one that scaling may not add holds up none", given(t, 4, scaleUnavailable("1")).old(span(0, 2), unready), []string{"delete 2"}},
		{"not below the partition", given(t, 3, partition(1)).old(at(0), unready).old(at(1, 2)), []string{}},
		{"one that has the update already is waited for", given(t, 3).old(span(0, 1)).updated(at(2), unready), []string{}},
		{"below the partition, too", given(t, 3, partition(1)).updated(at(0), unready).old(at(1, 2), unready), []string{}},
		{"not while paused", given(t, 3, paused(true)).old(span(0, 2), unready), []string{}},
		{"in order, the one that holds up the others", given(t, 3, inOrder()).old(at(0)).old(span(1, 2), unready), []string{"delete 1"}},
		{"in order, the first revision is faulty", given(t, 3, inOrder()).old(at(0), unready), []string{"delete 0"}},
		{"in order, with an available pod behind it", given(t, 3, inOrder()).old(at(0), unready).old(at(1, 2)), []string{"delete 0"}},
		{"in order, its successor is waited for", given(t, 3, inOrder()).old(at(0)).updated(at(1), unready).old(at(2), unready), []string{}},
		{"in order, the partition is passed over", given(t, 3, inOrder(), partition(1)).old(at(0), unready).old(at(1)).old(at(2), unready), []string{"delete 2"}},
		{"in order, a missing one comes first", given(t, 3, inOrder()).old(at(1, 2), unready), []string{"create 0"}},
		{"in order, unless its claim does not go", given(t, 3, inOrder(), claimed("data")).claim("data-web-0", going).old(at(1, 2), unready), []string{"delete 1"}},
		{"in place", given(t, 3, policy(v1beta1.InPlaceIfPossible)).old(at(0), unready).old(at(1, 2)), []string{"update 0"}},
	})
}

// The specification's example: six pods, partition 3, maxUnavailable 3.
func TestSpecifiedDelete(t *testing.T) {
	check(t, []row{
		{"highest first, as far as maxUnavailable goes", given(t, 6, partition(3), maxUnavailable("3")).old(span(0, 2), marked()).old(span(3, 4)).old(at(5), marked()), []string{"delete 5", "delete 2", "delete 1"}},
		{"then they come back, each at its revision", given(t, 6, partition(3), maxUnavailable("3")).old(at(0), marked()).old(span(3, 4)), []string{"create 1 old", "create 2 old", "create 5"}},
		{"one out of service costs nothing", given(t, 3).updated(span(0, 1), unready).updated(at(2), unready, marked()), []string{"delete 2"}},
		{"blocked ones are passed over", given(t, 3).updated(at(0), unready, marked()).updated(at(1)).updated(at(2), marked()), []string{"delete 0"}},
		{"OnDelete", given(t, 2, onDeleteOnly()).updated(span(0, 1), marked()), []string{"delete 1"}},
		{"paused", given(t, 2, paused(true)).old(span(0, 1), marked()), []string{"delete 1"}},
		{"in order", given(t, 3, inOrder()).updated(span(0, 2), marked()), []string{"delete 2"}},
		{"condemned pods go anyway", given(t, 1).updated(at(0)).updated(at(1), marked()), []string{"delete 1"}},
	})
}

// A node agent tells about a container within seconds of its start, and not at once.
func TestUpdatesInPlaceWaitForTheNodeAgentOfNewContainers(t *testing.T) {
	reads := func(ago time.Duration, options ...setOption) *world {
		w := given(t, 2, append(options, policy(v1beta1.InPlaceIfPossible), func(s *v1beta1.StatefulSet) { scenarios.ReadConfig(&s.Spec.Template.Spec) })...)
		w.revisions[0] = w.revision(w.set.Spec.Template, 1)
		w.set.Spec.Template.Annotations = map[string]string{scenarios.ConfigAnnotation: "2"}
		return w.changed().old(span(0, 1), gen.Change(func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}
		}))
	}
	check(t, []row{
		{"started just now", reads(2 * time.Second), []string{}},
		{"in order", reads(2*time.Second, inOrder()), []string{}},
		{"a while ago", reads(time.Minute), []string{"delete 1"}},
	})
	assert.Contains(t, reads(2*time.Second).waits(), "NodeAgentMissing web-1")
}

func TestUpdatesInPlace(t *testing.T) {
	inPlace := policy(v1beta1.InPlaceIfPossible)
	recreates := func(way v1beta1.PodUpdatePolicy) *world {
		w := given(t, 2, policy(way))
		w.set.Spec.Template.Spec.Containers[0].Command = []string{"run"}
		return w.changed().old(span(0, 1))
	}
	check(t, []row{
		{"an image", given(t, 3, inPlace).old(span(0, 2)), []string{"update 2"}},
		{"a command needs a new pod", recreates(v1beta1.InPlaceIfPossible), []string{"delete 1"}},
		{"which InPlaceOnly does not make", recreates(v1beta1.InPlaceOnly), []string{}},
		{"a pod that is being updated is out of service", given(t, 3, inPlace).old(span(0, 1)).updated(at(2), gen.Lifecycle(contract.LifecycleUpdating),
			gen.Condition(contract.InPlaceUpdateReady, corev1.ConditionFalse, now)), []string{}},
	})
	w := recreates(v1beta1.InPlaceOnly)
	status := w.status()
	text := fmt.Sprint(status.Conditions)
	assert.Contains(t, text, "pod web-1 cannot be updated in place (podUpdatePolicy InPlaceOnly)")
	assert.Contains(t, text, "spec.containers[0].command")
	todo := w.plan()
	require.Len(t, todo.Notices, 1)
	assert.Equal(t, "FailedUpdatePodInPlace", todo.Notices[0].Reason)
	assert.Contains(t, todo.Notices[0].Note, "spec.containers[0].command")
}

func TestHooks(t *testing.T) {
	check(t, []row{
		{"a hooked pod is prepared, not updated", given(t, 2, policy(v1beta1.InPlaceIfPossible), hooked()).old(span(0, 1), gen.Label("hook", "on")), []string{}},
		{"and updated once it is let go", given(t, 2, policy(v1beta1.InPlaceIfPossible), hooked()).old(at(0), gen.Label("hook", "on")).old(at(1), gen.Lifecycle(contract.LifecyclePreparingUpdate)), []string{"update 1"}},
		{"in order too (W32 a)", given(t, 2, inOrder(), policy(v1beta1.InPlaceIfPossible), hooked()).old(at(0), gen.Label("hook", "on")).old(at(1), gen.Lifecycle(contract.LifecyclePreparingUpdate)), []string{"update 1"}},
		{"in order, a pod let go is recreated (W32 b)", given(t, 2, inOrder(), hooked()).old(at(0)).old(at(1), gen.Lifecycle(contract.LifecyclePreparingDelete)), []string{"delete 1"}},
		{"the hook is gone from the spec (W33)", given(t, 2).old(at(0)).old(at(1), heldBefore(contract.LifecyclePreparingDelete)), []string{"delete 1"}},
	})
}

// W27: a pod in PreparingDelete had no way back.
func TestPreparedPodsComeBackWhenNobodyWantsThemGone(t *testing.T) {
	held := heldBefore(contract.LifecyclePreparingDelete)
	rows := []struct {
		name  string
		world *world
		back  bool
	}{
		{"scaled up again", given(t, 2, hooked()).updated(at(0)).updated(at(1), held), true},
		{"still specified", given(t, 2, hooked()).updated(at(0)).updated(at(1), held, marked()), false},
		{"to be recreated", given(t, 2, hooked()).updated(at(0)).old(at(1), held), false},
		{"kept by the partition", given(t, 2, hooked(), partition(2)).old(at(0)).old(at(1), held), true},
		{"can change in place now", given(t, 2, hooked(), policy(v1beta1.InPlaceIfPossible)).updated(at(0)).old(at(1), held), true},
		{"type OnDelete", given(t, 2, hooked(), onDeleteOnly()).updated(at(0)).old(at(1), held), true},
		{"condemned", given(t, 1, hooked()).updated(at(0)).updated(at(1), held), false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			back := false
			for a := range judges.Actions(r.world.plan().Steps, "") {
				if state, _ := judges.LabelIn(a, contract.LifecycleStateLabel); state == contract.LifecycleNormal {
					back = true
					assert.Equal(t, EventDeleteCancelled, a.Event.Succeeded)
				}
			}
			assert.Equal(t, r.back, back)
		})
	}
}

// W11, W33: pods in PreparingUpdate whose update is no longer wanted go back into service.
func TestPreparedUpdatesAreAbandoned(t *testing.T) {
	held := heldBefore(contract.LifecyclePreparingUpdate)
	inPlace := policy(v1beta1.InPlaceIfPossible)
	for name, w := range map[string]*world{
		"the partition was raised":  given(t, 2, inPlace, hooked(), partition(2)).old(at(0)).old(at(1), held),
		"the template went back":    given(t, 2, inPlace, hooked()).updated(at(0)).updated(at(1), held),
		"the type became OnDelete":  given(t, 2, hooked(), onDeleteOnly()).old(at(0)).old(at(1), held),
		"InPlaceOnly has no way on": given(t, 2, policy(v1beta1.InPlaceOnly), hooked(), claimed("data")).updated(at(0)).old(at(1), held, withoutVolumes),
	} {
		back, todo := false, w.plan()
		for a := range judges.Actions(todo.Steps, "") {
			state, _ := judges.LabelIn(a, contract.LifecycleStateLabel)
			back = back || a.Object.GetName() == "web-1" && state == contract.LifecycleNormal
		}
		assert.True(t, back, "%s: %s", name, todo.String())
	}
}

var withoutVolumes = gen.Change(func(o *corev1.Pod) { o.Spec.Volumes = nil })
