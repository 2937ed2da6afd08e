package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// course is a set and what its user does to it, for runs that are compared with each other.
type course struct {
	name  string
	nodes int
	given []setOption
	tell  func(*simulate.World)
}

func courses() []course {
	return []course{
		{"recreate", 3, nil, minutely(wants("app:2"))},
		{"recreate all at once", 3, []setOption{maxUnavailable("100%")}, minutely(wants("app:2"))},
		{"in place", 4, []setOption{inPlace, maxUnavailable("2")}, minutely(wants("app:2"))},
		{"restarts in place", 2, []setOption{inPlace, readsConfig}, restartsInPlace},
		{"surge", 3, []setOption{maxSurge("1")}, minutely(wants("app:2"))},
		{"surge all at once", 3, []setOption{maxSurge("100%"), minReady(5)}, minutely(wants("app:2"))},
		{"selector", 3, []setOption{onNodes("node-1")}, minutely(wants("app:2"))},
		{"both ways", 3, []setOption{inPlace, reverting, onNodes("node-1")}, minutely(wants("app:2"), told{"selects node-2", onNodes("node-2")})},
		{"a canary that goes back", 4, []setOption{reverting, partition("3")}, minutely(wants("app:2"), wants("app:1"), wants("app:3"))},
		{"hooks", 2, []setOption{hooked, hookTaken}, minutely(wants("app:2"))},
		{"burst", 4, []setOption{burst("1"), maxUnavailable("3")}, minutely(wants("app:2"))},
		{"min ready", 3, []setOption{minReady(5)}, minutely(wants("app:2"), wants("app:3"))},
		{"back and forth", 3, []setOption{inPlace}, minutely(wants("app:2"), wants("app:1"))},
		{"a taint", 3, nil, func(w *simulate.World) {
			w.After(time.Minute, func() { w.EditNode(cluster.CloudActor, "node-1", tainted("NoExecute")) })
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

func (c course) start(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := play(t, o, c.nodes, c.given...)
	answers(w, 3*time.Second)
	c.tell(w)
	return w, p
}

func simulated() []scenarios.Course {
	var all []scenarios.Course
	for _, c := range courses() {
		all = append(all, scenarios.Course{Name: c.name, Start: c.start, Arrived: arrived})
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
	scenarios.CheckFaults(t, simulated(), 3)
}

// Every write may arrive twice: the second time it changes nothing or is refused.
func TestReplayedWritesChangeNothing(t *testing.T) {
	scenarios.CheckReplays(t, simulated())
}

// While the server refuses some kind of write for minutes, whatever its answer, the operator is quiet, pods serve, and
// all that was wanted happens once the refusals have ended.
func TestRefusedWritesLeaveQuietAndServing(t *testing.T) {
	t.Parallel()
	explore(t, simulate.RefusedForLong)
}

// So it is where there is more to write: pods and revisions to adopt and to release.
func TestRefusedWritesAmongForeignActorsLeaveQuiet(t *testing.T) {
	t.Parallel()
	explore(t, func(seed uint64) simulate.Faults {
		f := simulate.RefusedForLong(seed)
		f.Passes, f.Foreign = 60, 0.15
		f.Actors = []simulate.Actor{
			simulate.DeletesPods, simulate.Orphans, simulate.OrphansRevisions, simulate.Relabels(contract.SpecifiedDeleteLabel, "true"), strays,
		}
		return f
	})
}

// Random worlds keep their invariants under faults as well.
func TestRandomEditsUnderFaultsKeepTheInvariants(t *testing.T) {
	t.Parallel()
	explore(t, simulate.AllFaults)
}

// Other people delete, orphan, hold and relabel pods. What they do is repaired or respected, and the set gets what it
// wants all the same.
func TestForeignActorsAreRepaired(t *testing.T) {
	t.Parallel()
	explore(t, func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign = 60, 0.15
		f.Actors = []simulate.Actor{
			simulate.DeletesPods, simulate.Orphans, simulate.OrphansRevisions, simulate.AddsFinalizer("example.com/hold", time.Minute), strays, bares,
			simulate.Relabels(contract.SpecifiedDeleteLabel, "true"), simulate.Relabels("example.com/x", "y"), simulate.Relabels(contract.RevisionLabel, ""),
		}
		return f
	})
}

// Nodes come, go, fail, and are tainted, cordoned, relabelled and renamed, and every eligible one has its pod in the
// end.
func TestNodesThatChangeKeepTheInvariants(t *testing.T) {
	t.Parallel()
	explore(t, func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign, f.Actors = 80, 0.2, nodeActors()
		return f
	})
}

// strays takes a pod out of the selector.
func strays(w *simulate.World, rng *rand.Rand) { simulate.Relabels("app", "other")(w, rng) }

// bares takes all labels off a pod for a while.
func bares(w *simulate.World, rng *rand.Rand) { simulate.StripsLabels(20*time.Second)(w, rng) }
