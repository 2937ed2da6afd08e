package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/gen"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Each test here is something that random worlds found.

// A pod that becomes available between a plan and its write was taken out of service as one that was not in it.
func TestPodsThatBecameAvailableMeanwhileAreSpared(t *testing.T) {
	for _, way := range []v1beta1.PodUpdatePolicy{v1beta1.ReCreate, v1beta1.InPlaceIfPossible} {
		w, p := play(t, cluster.Options{Seed: 1, Calm: true}, 2, policy(way), minReady(5), scaleUnavailable("1"))
		player := simulate.NewOperator(w, p, simulate.Faults{})
		for len(w.View(nil).Available("set-uid", 0)) < 1 {
			player.Pass()
			w.Advance(time.Second)
		}
		edit(w, image("app:2"))
		steps, _ := p.Plan(&operator.View{View: w.View(nil)}, w.Now(), 1)
		require.Empty(t, w.View(nil).Available("set-uid", 5))
		w.Advance(5 * time.Second)
		require.Len(t, w.View(nil).Available("set-uid", 5), 1)
		player.Run(steps)
		assert.Len(t, w.View(nil).Available("set-uid", 5), 1, "the story:\n%s", w.Story())
		assert.Empty(t, w.Violations())
		simulate.Settle(t, w, p, 500)
		arrived(t, w)
	}
}

// With priorities or scatter, an available pod that came first in order waited for a broken one behind it, and
// no new template helped.
func TestNoOrderKeepsABrokenPodFromItsUpdate(t *testing.T) {
	first := gen.Label("order", "9")
	for name, order := range map[string]setOption{
		"priority": labelledFirst(),
		"scatter": rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
			r.ScatterStrategy = workload.UpdateScatterStrategy{{Key: "order", Value: "9"}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			todo := given(t, 4, order).old(2, first).old(1).old(1, unready).plan()
			require.Contains(t, todo.String(), "Delete pod web-old3 (Recreate)")
			require.Equal(t, 1, todo.Count(action.Delete), todo.String())
			require.Equal(t, []action.Wait{{
				Reason: "MaxUnavailable", Object: "web-old0", Message: "the update waits until other pods are available",
			}}, todo.Waits)
		})
	}
}

// A partition keeps any pods where the user has not said which: the broken one, for which two others waited for ever, is
// updated in place of one of those.
func TestNoPartitionKeepsABrokenPodFromAScatteredUpdate(t *testing.T) {
	of := func(order setOption) string {
		return given(t, 3, partition("1"), order).old(2, gen.Label("order", "9")).old(1, unready).plan().String()
	}
	assert.Contains(t, of(rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.ScatterStrategy = workload.UpdateScatterStrategy{{Key: "order", Value: "9"}}
	})), "Delete pod web-old2 (Recreate)")
	assert.Contains(t, of(rolling(func(*v1beta1.RollingUpdateCloneSetStrategy) {})), "Delete pod web-old2 (Recreate)")
	assert.NotContains(t, of(labelledFirst()), "Recreate", "the user has said which pods come first")
}

// labelledFirst has pods with the label order=9 updated first.
func labelledFirst() setOption {
	return rolling(func(r *v1beta1.RollingUpdateCloneSetStrategy) {
		r.PriorityStrategy = &workload.UpdatePriorityStrategy{OrderPriority: []workload.UpdatePriorityOrderTerm{{OrderedKey: "order"}}}
	})
}

// A surge pod that does not get well takes the room that the pod which is to be updated waits for. It is updated in
// that pod's place, unless the partition keeps both where they are or there is room without it.
func TestABrokenSurgePodIsUpdatedInPlaceOfTheOneThatWaits(t *testing.T) {
	of := func(options ...setOption) *world {
		return given(t, 1, append(options, labelledFirst(), maxSurge("1"))...).old(1, gen.Label("order", "9")).old(1, unready)
	}
	todo := of(maxUnavailable("50%")).plan()
	assert.Contains(t, todo.String(), "Delete pod web-old1 (Recreate)")
	assert.Equal(t, 1, todo.Count(action.Delete), todo.String())
	assert.NotContains(t, of(maxUnavailable("50%"), partition("1")).plan().String(), "Recreate")
	assert.Contains(t, of(maxUnavailable("1")).plan().String(), "Delete pod web-old0 (Recreate)")
}

// A pod that leaves with the set's surplus stands for none that stays: the last pod that stays is updated, and
// counts together with the one that leaves only if that is taken back.
func TestPodsInPreparingDeleteStandForNoneThatStays(t *testing.T) {
	leaves := []gen.PodOption{gen.Lifecycle(contract.LifecyclePreparingDelete), gen.Label(simulate.HookLabel, simulate.HookTaken)}
	of := func(replicas int32) *world {
		return given(t, replicas, maxSurge("50%"), policy(v1beta1.InPlaceIfPossible), hooked()).old(1).updated(1, leaves...)
	}
	w := of(1)
	todo := w.plan()
	require.Equal(t, 1, todo.Count(action.UpdateInPlace), todo.String())
	assert.Empty(t, partitionHolds(w.snapshot(), todo))

	back := of(2).plan()
	require.Contains(t, back.String(), "web-new1 (PreDeleteCancelled)")
	todo.Steps = append(todo.Steps, back.Steps...)
	assert.NotEmpty(t, partitionHolds(w.snapshot(), todo), "two are at the update revision where one is wanted")
}

// A claim that a pod of somebody else mounts stays. That is no failure of the set, which is ready all the while: its
// status turned every time it asked again.
func TestClaimsThatStrangersMountLeaveTheSetReady(t *testing.T) {
	w, p := play(t, cluster.Options{Seed: 1}, 2, claimed("data"))
	simulate.Settle(t, w, p, 500)
	stranger := activePods(w)[0]
	require.NoError(t, cluster.Change(w, cluster.UserActor, "", stranger, func(o *corev1.Pod) {
		o.OwnerReferences, o.Labels["app"] = nil, "other"
	}))
	simulate.Settle(t, w, p, 500)
	arrived(t, w)
	claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), gen.Namespace, "data-"+stranger.Name)
	require.NotNil(t, claim)
	assert.Nil(t, claim.DeletionTimestamp)
}

// Where pods in PreparingDelete do not count, one that is taken back counts again: not as long as a specified pod has
// its place.
func TestPodsAreNotTakenBackAboveReplicas(t *testing.T) {
	leaves := []gen.PodOption{gen.Lifecycle(contract.LifecyclePreparingDelete), gen.Label(simulate.HookLabel, simulate.HookTaken)}
	w := given(t, 1, excluding(), hooked()).updated(1, leaves...).updated(1, gen.SpecifiedDelete())
	require.NotContains(t, w.plan().String(), "(PreDeleteCancelled)")
	require.Equal(t, outcome{deleteNew: 1}, w.outcome())

	w = given(t, 1, excluding(), hooked()).updated(1, leaves...)
	assert.Contains(t, w.plan().String(), "(PreDeleteCancelled)", "the specified pod is gone")
	w = given(t, 1, hooked()).updated(1, leaves...).updated(1, gen.SpecifiedDelete())
	assert.Contains(t, w.plan().String(), "(PreDeleteCancelled)", "both count all the while")
}

// An update that waits because it was refused has no grace period yet: the set was looked at again each time such a
// period would have been over.
func TestHeldUpdatesWakeOnlyForTheirTurn(t *testing.T) {
	s := given(t, 1, policy(v1beta1.InPlaceIfPossible), grace(1)).old(1).snapshot()
	require.Contains(t, Compute(s).String(), "UpdateInPlace pod web-old0")
	s.Refusals = action.Refusals{{Verb: action.UpdateInPlace, Kind: "pod", Reason: "Update"}: {Probing: true, Until: now.Add(30 * time.Second)}}
	todo := Compute(s)
	require.Zero(t, todo.Count(action.UpdateInPlace), todo.String())
	assert.Equal(t, 30*time.Second, todo.RequeueAfter)
}

// startUpdate plays a set of four pods, n of which may be out of service at once. After a minute its user wants the images,
// one each second.
func startUpdate(t testing.TB, o cluster.Options, n string, images ...string) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := play(t, o, 4, policy(v1beta1.InPlaceIfPossible), maxUnavailable(n))
	var edits []told
	for _, name := range images {
		edits = append(edits, wants(name))
	}
	timely(time.Second, edits...)(w)
	return w, p
}

// Pods serve and the status is quiet while a part of their updates is refused, or the revision after that.
func TestRefusedUpdatesLeaveStatusAndPodsAlone(t *testing.T) {
	scenarios.CheckRefusedUpdates(t, startUpdate, arrived)
}

// What a budget frees is used soon: what it had refused was sent as a dry run first, which it refused, too, and waited for
// half a minute each time.
func TestUpdatesKeepToABudgetAndGoOnWhenItFrees(t *testing.T) {
	conditionsOf := func(w *simulate.World) []workload.Condition { return present(w).Status.Conditions }
	t.Run("an image", func(t *testing.T) { scenarios.CheckBudget(t, startUpdate, conditionsOf, arrived) })
	t.Run("a restart in place", func(t *testing.T) { scenarios.CheckBudget(t, startRestart, conditionsOf, arrived) })
}

// startRestart is startUpdate for a user who wants containers restarted as they are.
func startRestart(t testing.TB, o cluster.Options, n string, _ ...string) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := play(t, o, 4, policy(v1beta1.InPlaceOnly), maxUnavailable(n), readsConfig)
	w.NodeAgents()
	again := map[string]string{scenarios.ConfigAnnotation: "1", contract.RestartInPlaceAnnotation: "1"}
	timely(time.Second, told{"wants a restart", annotations(again)})(w)
	return w, p
}

// A revision and pods that are refused at a time hold each other up. Of them the same is said whether the revision is
// just being tried or waits for its turn: what it holds up ends the pass all the same.
func TestOfARevisionThatIsHeldTheSameIsSaid(t *testing.T) {
	w := given(t, 4, policy(v1beta1.InPlaceIfPossible), maxUnavailable("50%")).old(3)
	w.unsaved = true
	w.set.Status.Conditions = []workload.Condition{{Type: v1beta1.CloneSetFailedScale, Status: corev1.ConditionTrue}}
	waits := func(until time.Duration) []action.Wait {
		s := w.snapshot()
		s.Refusals = action.Refusals{
			{Verb: action.Create, Kind: "pod", Reason: "ScaleOut"}:                   {Probing: true, Told: action.Told{Message: "no pods"}, Until: now.Add(time.Hour)},
			{Verb: action.Create, Kind: "controllerrevision", Reason: "NewTemplate"}: {Probing: true, Told: action.Told{Message: "no revisions"}, Until: now.Add(until)},
		}
		return Compute(s).Waits
	}
	require.NotEmpty(t, waits(0))
	assert.Equal(t, waits(0), waits(time.Minute))
}

// While pods cannot be created updates do not wait for them, and come once in a pass all the same: a pod that its hook
// holds before its update takes the place of no other one.
func TestUpdatesThatDoNotWaitForCreationsTakeNoMorePods(t *testing.T) {
	inHook := []gen.PodOption{gen.Label("hook", "on"), gen.Lifecycle(contract.LifecyclePreparingUpdate)}
	w := given(t, 6, policy(v1beta1.InPlaceIfPossible), maxUnavailable("50%"), partition("2"), hooked(), hookTaken()).
		old(1, inHook...).old(2, gen.Label("hook", "on")).updated(2, gen.Label("hook", "on"))
	w.set.Status.Conditions = []workload.Condition{{Type: v1beta1.CloneSetFailedScale, Status: corev1.ConditionTrue}}
	s := w.snapshot()
	s.Refusals = action.Refusals{{Verb: action.Create, Kind: "pod", Reason: "ScaleOut"}: {Probing: true, Told: action.Told{Message: "no pods"}, Until: now.Add(time.Hour)}}
	assert.Empty(t, Compute(s).Steps)
}

// While pods cannot be created updates do not wait for them, but for pods that users want gone: these cost nothing where
// they are out of service, and an update that goes on for long would use up what they need where they are not.
func TestSpecifiedPodsGoBeforeUpdatesThatDoNotWaitForCreations(t *testing.T) {
	for name, options := range map[string][]gen.PodOption{"out of service": {unready}, "available": nil} {
		t.Run(name, func(t *testing.T) {
			w := given(t, 4, maxUnavailable("3")).old(2).old(1, append(options, gen.SpecifiedDelete())...)
			w.set.Status.Conditions = []workload.Condition{{Type: v1beta1.CloneSetFailedScale, Status: corev1.ConditionTrue}}
			s := w.snapshot()
			s.Refusals = action.Refusals{{Verb: action.Create, Kind: "pod", Reason: "ScaleOut"}: {Probing: true, Told: action.Told{Message: "no pods"}, Until: now.Add(time.Hour)}}
			todo := Compute(s)
			require.Len(t, todo.Steps, 1, todo.String())
			require.Len(t, todo.Steps[0].Actions, 1, todo.String())
			assert.Equal(t, "SpecifiedDelete", todo.Steps[0].Actions[0].Reason)
		})
	}
}

// A pass that scales in updates nothing. What is refused to the update is told all the same once it is in the status,
// as in passes in which the deletion of the pod too many waits for its turn.
func TestOfWhatAPassDoesNotComeToTheSameIsSaid(t *testing.T) {
	w := given(t, 2, policy(v1beta1.ReCreate), maxUnavailable("1")).old(3)
	w.set.Status.Conditions = []workload.Condition{{Type: v1beta1.CloneSetFailedScale, Status: corev1.ConditionTrue, Message: "not for an update"}}
	told := func(until time.Duration) action.Failures {
		s := w.snapshot()
		s.Refusals = action.Refusals{
			{Verb: action.Delete, Kind: "pod", Reason: "ScaleIn"}:  {Probing: true, Told: action.Told{Message: "not for scaling in"}, StillWanted: true, Until: now.Add(until)},
			{Verb: action.Delete, Kind: "pod", Reason: "Recreate"}: {Probing: true, Told: action.Told{Message: "not for an update"}, StillWanted: true, Until: now.Add(time.Hour)},
		}
		return action.Failures{}.WithDeferred(Compute(s).Deferred)
	}
	assert.Equal(t, "not for an update", told(0).ScaleError)
	assert.Equal(t, told(0), told(time.Minute))
	w.set.Status.Conditions = nil
	assert.Equal(t, "not for scaling in", told(0).ScaleError, "what no pass has told is perhaps no longer wanted")
}
