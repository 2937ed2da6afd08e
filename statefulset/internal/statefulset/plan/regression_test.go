package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/judges"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// Each test here is something that users of OpenKruise ran into; the numbers are those of its issues.

// 2109: while one pod did not come to its end, nothing happened to higher ordinals.
func TestAPodThatNeverEndsHoldsUpNoOther(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 4}, 4, maxUnavailable("2"), claimed("data"))
	simulate.Settle(t, w, p, 500)
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", podOf(w, 1), func(o *corev1.Pod) { o.Finalizers = []string{"example.com/hold"} }))
	require.NoError(t, w.Delete(cluster.UserActor, podOf(w, 1)))
	edit(w, image("app:2"), replicas(6))
	operator := simulate.NewOperator(w, p, simulate.Faults{})
	for start := w.Now(); w.Now().Sub(start) < 5*time.Minute; w.Advance(time.Second) {
		operator.Pass()
	}
	require.Empty(t, w.Violations())
	assert.Equal(t, at(0, 2, 3, 4, 5), running(w))
	for _, o := range activePods(w) {
		assert.Equal(t, "app:2", o.Spec.Containers[0].Image, o.Name)
	}
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", podOf(w, 1), func(o *corev1.Pod) { o.Finalizers = nil }))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
}

// Two pods of a bad image are not wanted any more: each waited for the other, whatever the template.
func TestANewTemplateEndsTheWaitOfCondemnedPods(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1, Images: badImages()}, 4, inOrder(), policy(v1beta1.InPlaceIfPossible), maxUnavailable("2"))
	simulate.Settle(t, w, p, 500)
	edit(w, image("app:pull"))
	simulate.Settle(t, w, p, 500)
	edit(w, replicas(2))
	simulate.Settle(t, w, p, 500)
	assert.Equal(t, at(0, 1, 2, 3), running(w), "as long as the template stays they are waited for")
	edit(w, image("app:2"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
}

// 1480: unavailable pods later in the order did not count. 196, 1134: small percentages hung, and so
// did 100%.
func TestNoPercentageHangsARollout(t *testing.T) {
	for _, percentage := range []string{"1%", "34%", "99%", "100%", "200%"} {
		for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
			w, p := play(t, cluster.Options{Seed: 7, Flaps: 0.3}, 3, policy(way), maxUnavailable(percentage))
			simulate.Settle(t, w, p, 500)
			edit(w, image("app:2"))
			simulate.Settle(t, w, p, 500)
			arrived(t, w)
		}
	}
}

// 2285: the replacement of a pod waited until the whole batch was gone. W13.
func TestAPodIsReplacedAsSoonAsItIsGone(t *testing.T) {
	w := given(t, 4, maxUnavailable("3")).updated(at(0)).old(at(1, 2), terminating)
	assert.Equal(t, []string{"create 3"}, w.did())
}

// 376: going back from a revision that never came up took healthy pods first.
func TestGoingBackFromABadRevisionSparesHealthyPods(t *testing.T) {
	for _, way := range [][]setOption{{inOrder()}, {maxUnavailable("2")}, {inOrder(), policy(v1beta1.InPlaceIfPossible)}, {maxUnavailable("2"), policy(v1beta1.InPlaceIfPossible)}} {
		for name := range badImages() {
			w, p := play(t, cluster.Options{Seed: 2, Images: badImages()}, 4, way...)
			simulate.Settle(t, w, p, 500)
			edit(w, image(name))
			simulate.Settle(t, w, p, 500)
			healthy := identities(w)
			for _, o := range w.Pods() {
				if !podstate.Of(o, w.Now(), 0).Available {
					delete(healthy, o.Name)
				}
			}
			require.GreaterOrEqual(t, len(healthy), 2)
			edit(w, image("app:1"))
			simulate.Settle(t, w, p, 500)
			arrived(t, w)
			for name, identity := range healthy {
				assert.Equal(t, identity, identities(w)[name], "pod %s was healthy, the story:\n%s", name, w.Story())
			}
		}
	}
}

// Whatever the present revision is stuck on, in either way of managing pods, a good one rolls out.
// kubernetes/kubernetes 67250, 137409.
func TestAGoodRevisionEndsWhateverABadOneIsStuckOn(t *testing.T) {
	stuck := map[string]cluster.Options{
		"crashes": {Images: badImages()}, "no image": {Images: badImages()}, "no node": {Unschedulable: func(o *corev1.Pod) bool { return o.Spec.Containers[0].Image == "app:nowhere" }},
	}
	images := map[string]string{"crashes": "app:crash", "no image": "app:pull", "no node": "app:nowhere"}
	for name, options := range stuck {
		for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
			for _, order := range []setOption{inOrder(), maxUnavailable("1")} {
				options.Seed = 3
				w, p := play(t, options, 3, policy(way), order)
				simulate.Settle(t, w, p, 500)
				edit(w, image(images[name]))
				simulate.Settle(t, w, p, 500)
				serving := len(w.View(nil).Available("set-uid", 0))
				require.GreaterOrEqual(t, serving, 2, name)
				w.Limit("fewer than two pods serve", func(v *cluster.View) int { return 2 - len(v.Available("set-uid", 0)) }, func(*cluster.View) int { return 0 })
				edit(w, image("app:good"))
				simulate.Settle(t, w, p, 500)
				arrived(t, w)
			}
		}
	}
}

// 1156, 1183, W32: hooks held pods for ever once the target had changed, and sets in order for good.
func TestHooksNeverLeaveASetStuck(t *testing.T) {
	for name, end := range map[string][]setOption{
		"the template went back":   {image("app:1")},
		"the partition was raised": {partition(3)},
		"the hooks were removed":   {func(s *v1beta1.StatefulSet) { s.Spec.Lifecycle = nil }},
		"the type became OnDelete": {updateType("OnDelete"), valid},
	} {
		for _, order := range []setOption{inOrder(), maxUnavailable("2")} {
			for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
				t.Run(name+" "+string(way), func(t *testing.T) {
					w, p := play(t, cluster.Options{Seed: 5}, 3, policy(way), hooked(), hookTaken(), order)
					simulate.Settle(t, w, p, 500)
					edit(w, image("app:2"))
					simulate.Settle(t, w, p, 500)
					require.Less(t, len(w.View(nil).Available("set-uid", 0)), 3, "nobody lets the pods go")
					edit(w, end...)
					simulate.Settle(t, w, p, 500)
					assert.Len(t, w.View(nil).Available("set-uid", 0), 3, "the story:\n%s", w.Story())
				})
			}
		}
	}
}

// 369, 606, 635, 1493, 2297: an update between two names of one image never ended.
func TestTwoNamesOfOneImageEndAnUpdate(t *testing.T) {
	same := map[string]cluster.Image{"app:1": {Digest: "same"}, "docker.io/library/app:1": {Digest: "same"}}
	for seed := uint64(1); seed <= 5; seed++ {
		w, p := play(t, cluster.Options{Seed: seed, Images: same}, 2, policy(v1beta1.InPlaceOnly))
		simulate.Settle(t, w, p, 500)
		before := identities(w)
		edit(w, image("docker.io/library/app:1"))
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
		assert.Equal(t, before, identities(w))
	}
}

// 1683: an injected sidecar kept pods from being updated in place.
func TestInjectedContainersAreLeftAlone(t *testing.T) {
	sidecar := gen.Change(func(o *corev1.Pod) {
		o.Spec.Containers = append(o.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar:1"})
	})
	w := given(t, 1, policy(v1beta1.InPlaceOnly)).old(at(0), sidecar)
	assert.Equal(t, []string{"update 0"}, w.did())
	for a := range judges.Actions(w.plan().Steps, stepUpdate) {
		assert.NotContains(t, fmt.Sprint(a.Patches, a.LaterPatches), "sidecar:1")
	}
}

// 541, 1212, 2366: resources could not be changed in place.
func TestResourcesChangeInPlaceWithoutARestart(t *testing.T) {
	cpu := func(amount string) setOption {
		return func(s *v1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
		}
	}
	w, p := play(t, cluster.Options{Seed: 6}, 2, policy(v1beta1.InPlaceIfPossible), cpu("1"), inOrder())
	simulate.Settle(t, w, p, 500)
	before := identities(w)
	edit(w, cpu("2"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Equal(t, before, identities(w))
	for _, o := range activePods(w) {
		assert.Equal(t, "2", o.Spec.Containers[0].Resources.Requests.Cpu().String())
		assert.Zero(t, o.Status.ContainerStatuses[0].RestartCount)
	}
}

// 1765, 1829, W6: what had been expected and never came held a set up for ever.
func TestPodsThatVanishUnseenAreMadeAgain(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 3, policy(v1beta1.InPlaceIfPossible), partition(1))
	vanished := 0
	w.OnEvent(func(w *simulate.World, e cluster.Event) {
		if o, ok := e.Object.(*corev1.Pod); ok && vanished < 6 && (e.Type == cluster.Added || o.Labels[contract.LifecycleStateLabel] == contract.LifecycleUpdating) && o.DeletionTimestamp == nil {
			vanished++
			require.NoError(t, w.Delete(cluster.UserActor, e.Object))
		}
	})
	minutely(wants("app:2"))(w)
	simulate.SettleUnder(t, w, p, simulate.Faults{Seed: 1, Lag: 10}, 1000)
	arrived(t, w)
	assert.Equal(t, 6, vanished)
}

// 632, 1751, 1819: what partition means changed, and what a raised one does. It counts pods; those that
// are updated already stay so until they are replaced, and come back at the current revision.
func TestThePartitionCountsPodsInBothDirections(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 4}, 5, partition(5), startAt(10))
	simulate.Settle(t, w, p, 500)
	edit(w, image("app:2"))
	old := func() int {
		return judges.CountByRevision(activePods(w))[podstate.ShortHash(present(w).Status.CurrentRevision)]
	}
	for _, step := range [][2]int{{4, 4}, {1, 1}, {3, 1}} { // raising it takes nobody back
		edit(w, partition(int32(step[0])))
		simulate.Settle(t, w, p, 500)
		assert.Equal(t, step[1], old(), "partition %d", step[0])
	}
	require.NoError(t, w.Delete(cluster.UserActor, podOf(w, 11)))
	simulate.Settle(t, w, p, 500)
	assert.Equal(t, 2, old())
}

// W5: condemned pods waited for an event to become available, and W14: so did pods of paused sets.
func TestAvailabilityIsLookedAtAgainInTime(t *testing.T) {
	for name, w := range map[string]*world{
		"condemned": given(t, 1, inOrder(), minReady(60)).updated(at(0)).updated(at(1), readySince(20*time.Second)),
		"paused":    given(t, 1, paused(true), minReady(60)).old(at(0), readySince(20*time.Second)),
		"live":      given(t, 1, minReady(60)).updated(at(0), readySince(20*time.Second)),
	} {
		assert.Equal(t, 40*time.Second, w.plan().RequeueAfter, name)
	}
}

// W11: pods that a hook holds before their update counted as updated already.
func TestPreparedPodsAreStillOfTheirRevision(t *testing.T) {
	w := given(t, 3, policy(v1beta1.InPlaceIfPossible), hooked(), maxUnavailable("2")).old(at(0)).old(span(1, 2), heldBefore(contract.LifecyclePreparingUpdate))
	assert.Equal(t, [2]int32{3, 0}, [2]int32{w.status().CurrentReplicas, w.status().UpdatedReplicas})
}

// W26: the key that takes a pod out of service stayed on it after the update.
func TestMarkedPodsComeBackIntoService(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 8}, 2, policy(v1beta1.InPlaceIfPossible), hooked(), hookTaken(), func(s *v1beta1.StatefulSet) {
		hook := *s.Spec.Lifecycle.InPlaceUpdate
		hook.MarkPodNotReady = true
		s.Spec.Lifecycle = &workload.Lifecycle{InPlaceUpdate: &hook, PreDelete: &hook}
	})
	answers(w, 3*time.Second)
	simulate.Settle(t, w, p, 500)
	marked := 0
	w.OnEvent(func(_ *simulate.World, e cluster.Event) {
		o, ok := e.Object.(*corev1.Pod)
		if ok && lifecycle.State(o) == contract.LifecyclePreparingUpdate && podstate.Condition(o, contract.KruisePodReady).Status == corev1.ConditionFalse {
			marked++
		}
	})
	edit(w, image("app:2"))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	assert.Positive(t, marked)
	for _, o := range activePods(w) {
		assert.Equal(t, corev1.ConditionTrue, podstate.Condition(o, contract.KruisePodReady).Status)
	}
}

// A pod without the readiness gate stays in service, and the user is told so.
func TestMarkingAPodWithoutTheGateIsToldOf(t *testing.T) {
	hook := &workload.LifecycleHook{LabelsHandler: map[string]string{"hook": "on"}, MarkPodNotReady: true}
	for name, w := range map[string]*world{
		"update": given(t, 1, policy(v1beta1.InPlaceIfPossible), func(s *v1beta1.StatefulSet) { s.Spec.Lifecycle = &workload.Lifecycle{InPlaceUpdate: hook} }).old(at(0), gen.Label("hook", "on")),
		"delete": given(t, 0, func(s *v1beta1.StatefulSet) { s.Spec.Lifecycle = &workload.Lifecycle{PreDelete: hook} }).old(at(0), gen.Label("hook", "on")),
	} {
		var told []string
		for _, n := range w.plan().Notices {
			told = append(told, n.Reason)
		}
		assert.Contains(t, told, EventGateMissing, name)
	}
}

// W24: pods were created one after the other. They are created in a slow start, and the plan of a pod
// that cannot be created holds up no deletion and no update.
func TestPodsAreCreatedInASlowStart(t *testing.T) {
	for _, step := range given(t, 100).plan().Steps {
		if step.Name == stepCreate {
			assert.True(t, step.SlowStart)
			assert.Len(t, step.Actions, 100)
		}
	}
}

// A name that somebody else has taken keeps one ordinal empty, and no other: G6.
func TestATakenNameHoldsUpNoOtherPod(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 9}, 5)
	w.Add(gen.Pod("web-1", gen.OnNode("node-1")))
	operator := simulate.NewOperator(w, p, simulate.Faults{})
	for range 30 {
		operator.Pass()
		w.Advance(time.Second)
	}
	require.Empty(t, w.Violations())
	assert.Equal(t, at(0, 2, 3, 4), running(w))
}

// W29: deletions carried no UID, so that a stale view could delete a fresh pod of the name.
func TestAStaleViewDeletesNoFreshPod(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 9}, 2)
	simulate.Settle(t, w, p, 500)
	stale := podOf(w, 1)
	require.NoError(t, w.Delete(cluster.UserActor, stale))
	simulate.Settle(t, w, p, 500)
	fresh := podOf(w, 1)
	require.NotEqual(t, stale.UID, fresh.UID)
	simulate.NewOperator(w, p, simulate.Faults{}).Run([]action.Step{{Actions: []action.Action{{Verb: action.Delete, Object: stale}}}})
	assert.Nil(t, podOf(w, 1).DeletionTimestamp)
}

// A set that was deleted with its pods kept and created again knows their revisions again: in the middle of
// a rollout, and for the next image.
func TestASetCreatedAgainKnowsItsRevisions(t *testing.T) {
	given := []setOption{policy(v1beta1.InPlaceIfPossible), maxUnavailable("2"), partition(1), claimed("data")}
	w, p := play(t, cluster.Options{Seed: 5}, 3, given...)
	simulate.Settle(t, w, p, 500)
	edit(w, image("app:2"))
	simulate.Settle(t, w, p, 500)
	before := identities(w)
	require.NoError(t, w.Leave(cluster.UserActor, present(w)))
	again := newSet(3, append(given, image("app:2"))...)
	again.Generation = 1
	w.Add(again)
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	edit(w, image("app:3"), partition(0))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	require.Equal(t, before, identities(w), "the story:\n%s", w.Story())
}
