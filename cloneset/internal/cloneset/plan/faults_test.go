package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// course is a set and what its user does to it.
type course struct {
	name     string
	replicas int32
	given    []setOption
	tell     func(*simulate.World)
}

func courses() []course {
	inPlace := policy(v1beta1.InPlaceIfPossible)
	return []course{
		{"scale out and in", 4, nil, minutely(told{"wants 2 replicas", replicas(2)})},
		{"in place", 4, []setOption{inPlace, maxUnavailable("2")}, minutely(wants("app:2"))},
		{"in place with grace", 2, []setOption{inPlace, grace(5)}, minutely(wants("app:2"))},
		{"restarts in place", 2, []setOption{policy(v1beta1.InPlaceOnly), readsConfig}, restartsInPlace},
		{"recreate", 3, nil, minutely(wants("app:2"))},
		{"recreate with surge", 3, []setOption{maxSurge("1"), maxUnavailable("0")}, minutely(wants("app:2"))},
		{"partition and back", 3, []setOption{inPlace, partition("1")}, minutely(wants("app:2"), wants("app:1"))},
		{"claims", 3, []setOption{claimed("data", "log")}, minutely(wants("app:2"), told{"wants 1 replica", replicas(1)})},
		{"claims reused", 3, []setOption{claimed("data"), reusing}, minutely(wants("app:2"), told{"wants 1 replica", replicas(1)})},
		{"hooks in place", 2, []setOption{inPlace, hooked(), hookTaken()}, minutely(wants("app:2"))},
		{"hooks before deletion", 3, []setOption{hooked(), hookTaken()}, minutely(wants("app:2"), told{"wants 1 replica", replicas(1)})},
		{"specified with surge", 3, []setOption{maxSurge("1")}, func(w *simulate.World) {
			minutely(told{"names the oldest pod in podsToDelete", nameOne(w)})(w)
		}},
	}
}

// restartsInPlace asks for two restarts of containers as they are, where nodes have agents.
func restartsInPlace(w *simulate.World) {
	w.NodeAgents()
	again := func(value string) told {
		return told{"wants restart " + value, annotations(map[string]string{scenarios.ConfigAnnotation: "1", contract.RestartInPlaceAnnotation: value})}
	}
	minutely(again("1"), again("2 side"))(w)
}

func simulated() []scenarios.Course {
	var all []scenarios.Course
	for _, c := range courses() {
		all = append(all, scenarios.Course{Name: c.name, Arrived: arrived, Start: func(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
			t.Helper()
			w, p := play(t, o, c.replicas, c.given...)
			answers(w, 3*time.Second)
			c.tell(w)
			return w, p
		}})
	}
	return all
}

// A crash after any write leaves a world from which the next operator arrives at the same end.
func TestCrashesAfterAnyWriteEndTheSame(t *testing.T) {
	t.Parallel()
	scenarios.CheckCrashes(t, simulated())
}

// Whatever the faults, the end is the one without them.
func TestFaultsEndTheSame(t *testing.T) {
	t.Parallel()
	scenarios.CheckFaults(t, simulated(), 4)
}

// Every write may arrive twice: the second time it changes nothing or is refused.
func TestReplayedWritesChangeNothing(t *testing.T) {
	scenarios.CheckReplays(t, simulated())
}

// While the server refuses some kind of write for minutes, whatever its answer, the operator is quiet, pods
// serve, and all that was wanted happens once the refusals have ended.
func TestRefusedWritesLeaveQuietAndServing(t *testing.T) {
	t.Parallel()
	explore(t, simulate.RefusedForLong)
}

// So it is where there is more to write: pods and revisions to adopt and to release, and claims to hand on.
func TestRefusedWritesAmongForeignActorsLeaveQuiet(t *testing.T) {
	t.Parallel()
	explore(t, func(seed uint64) simulate.Faults {
		f := simulate.RefusedForLong(seed)
		f.Passes, f.Foreign = 60, 0.15
		f.Actors = []simulate.Actor{
			simulate.DeletesPods, simulate.Orphans, simulate.OrphansRevisions, simulate.Relabels(contract.SpecifiedDeleteLabel, "true"),
			simulate.Relabels("app", "other"), returns, simulate.Relabels(contract.InstanceIDLabel, ""),
		}
		return f
	})
}

// Random worlds keep their invariants under faults as well.
func TestRandomEditsUnderFaultsKeepTheInvariants(t *testing.T) {
	t.Parallel()
	explore(t, simulate.AllFaults)
}

// Other people delete, orphan, hold and relabel pods. What they do is repaired or respected, and the
// set gets what it wants all the same.
func TestForeignActorsAreRepaired(t *testing.T) {
	t.Parallel()
	explore(t, func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign = 60, 0.15
		f.Actors = []simulate.Actor{
			simulate.DeletesPods, simulate.Orphans, simulate.OrphansRevisions, simulate.AddsFinalizer("example.com/hold", time.Minute),
			simulate.Relabels("app", "other"), returns, simulate.Relabels(contract.SpecifiedDeleteLabel, "true"),
			simulate.Relabels("example.com/x", "y"), flapsReplicas,
			simulate.Relabels(contract.InstanceIDLabel, ""), bares,
		}
		return f
	})
}

// returns brings pods back into the selector.
func returns(w *simulate.World, rng *rand.Rand) {
	simulate.Relabels("app", "web")(w, rng)
	givesIn(w)
}

// bares takes a pod out of the selector for a moment.
func bares(w *simulate.World, rng *rand.Rand) {
	simulate.StripsLabels(20*time.Second)(w, rng)
	givesIn(w)
}

// givesIn: while a pod was out of the selector, history may have dropped its revision. Then policy InPlaceOnly leaves
// it no way, and the user is told so and gives in.
func givesIn(w *simulate.World) {
	w.After(10*time.Minute, func() {
		if rollingUpdate(present(w)).PodUpdatePolicy == v1beta1.InPlaceOnly {
			edit(w, policy(v1beta1.InPlaceIfPossible))
		}
	})
}

// flapsReplicas is an autoscaler that cannot decide.
func flapsReplicas(w *simulate.World, rng *rand.Rand) {
	w.Tell("foreign", "autoscales")
	edit(w, replicas(int32(1+rng.IntN(5))), valid)
}

// One pod that cannot go on holds up no other one: not its deletion, its claims or its update.
func TestOnePodInTroubleHoldsUpNoOther(t *testing.T) {
	troubles := map[string]simulate.Actor{
		"held by a finalizer for an hour": simulate.AddsFinalizer("example.com/hold", time.Hour),
		"deleted and held": func(w *simulate.World, rng *rand.Rand) {
			simulate.AddsFinalizer("example.com/hold", time.Hour)(w, rng)
			simulate.DeletesPods(w, rng)
		},
	}
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			w, p := play(t, cluster.Options{Seed: 3}, 4, claimed("data"))
			simulate.Settle(t, w, p, 500)
			trouble(w, rand.New(rand.NewPCG(1, 1)))
			edit(w, image("app:2"))
			operator := simulate.NewOperator(w, p, simulate.Faults{})
			for start := w.Now(); w.Now().Sub(start) < 10*time.Minute; w.Advance(time.Second) {
				operator.Pass()
			}
			require.Empty(t, w.Violations())
			for _, o := range activePods(w) {
				assert.Equal(t, "app:2", o.Spec.Containers[0].Image)
			}
			assert.Len(t, w.View(nil).Available("set-uid", 0), 4, "the story:\n%s", w.Story())
		})
	}
}

// Kubelets evict and reject pods, and nodes fail and come back. What is lost is made again.
func TestFailingNodesKeepTheInvariants(t *testing.T) {
	t.Parallel()
	explore(t, func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign, f.Actors = 60, 0.15, []simulate.Actor{simulate.EvictsPods, simulate.RejectsPods(20 * time.Second), simulate.FailsNodes(40 * time.Second)}
		return f
	})
}

// Autoscalers, evictions, hooks and people who delete pods: what becomes of the claims of an instance becomes of all of
// them.
func TestClaimsUnderFlaps(t *testing.T) {
	t.Parallel()
	walk := worlds(func(s *v1beta1.CloneSet) {
		s.Spec.VolumeClaimTemplates = nil
		claimed("data", "log")(s)
	})
	walk.Faults = func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign = 60, 0.2
		f.Actors = []simulate.Actor{
			simulate.DeletesPods, flapsReplicas, simulate.EvictsPods, simulate.Relabels(contract.SpecifiedDeleteLabel, "true"),
			func(w *simulate.World, _ *rand.Rand) { edit(w, nameOne(w)) },
		}
		return f
	}
	walk.Run(t)
}
