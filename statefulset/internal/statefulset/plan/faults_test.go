package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/scenarios"
	"github.com/flotilla-project/flotilla/core/testing/simulate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// course is a set and what its user does to it, for runs that are compared with each other.
type course struct {
	name     string
	replicas int32
	given    []setOption
	tell     func(*simulate.World)
}

func courses() []course {
	inPlace := policy(v1beta1.InPlaceIfPossible)
	return []course{
		{"scale in order", 3, []setOption{inOrder()}, minutely(told{"wants 1 replica", replicas(1)})},
		{"scale at once", 4, nil, minutely(told{"wants 2 replicas", replicas(2)})},
		{"in place", 4, []setOption{inPlace, maxUnavailable("2")}, minutely(wants("app:2"))},
		{"in place with grace in order", 2, []setOption{inOrder(), inPlace, grace(5)}, minutely(wants("app:2"))},
		{"restarts in place", 2, []setOption{policy(v1beta1.InPlaceOnly), readsConfig}, restartsInPlace},
		{"recreate in order", 3, []setOption{inOrder()}, minutely(wants("app:2"))},
		{"recreate at once", 3, []setOption{maxUnavailable("100%")}, minutely(wants("app:2"))},
		{"partition and back", 3, []setOption{inPlace, partition(1)}, minutely(wants("app:2"), wants("app:1"))},
		{"unordered", 4, []setOption{unorderedBy(nil), partition(0), maxUnavailable("2")}, minutely(wants("app:2"))},
		{"claims that stay", 3, []setOption{claimed("data", "log")}, minutely(wants("app:2"), told{"wants 1 replica", replicas(1)})},
		{"claims that go", 3, []setOption{claimed("data"), retention("Delete", "Delete")}, minutely(told{"wants 1 replica", replicas(1)}, told{"wants 2 replicas", replicas(2)})},
		{"claims that grow", 2, []setOption{claimed("data"), growing("1Gi")}, minutely(told{"wants 2Gi and app:2", both(growing("2Gi"), image("app:2"))})},
		{"claim template added", 2, []setOption{claimed("data"), inPlace}, minutely(told{"adds claim template log", claimed("log")})},
		{"reserved ordinals", 3, []setOption{reserved(1)}, minutely(told{"reserves 3 too", reserved(1, 3)}, told{"reserves none", reserved()})},
		{"hooks in place in order", 2, []setOption{inOrder(), inPlace, hooked(), hookTaken()}, minutely(wants("app:2"))},
		{"hooks before deletion", 3, []setOption{hooked(), hookTaken()}, minutely(wants("app:2"), told{"wants 1 replica", replicas(1)})},
		{"scale strategy", 1, []setOption{scaleUnavailable("2")}, minutely(told{"wants 5 replicas", replicas(5)})},
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
	w, p := play(t, o, c.replicas, c.given...)
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
			strays, simulate.Relabels("statefulset.kubernetes.io/pod-name", ""),
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
			simulate.DeletesPods, simulate.Orphans, simulate.OrphansRevisions, simulate.AddsFinalizer("example.com/hold", time.Minute), strays, bares,
			simulate.Relabels(contract.SpecifiedDeleteLabel, "true"), simulate.Relabels("example.com/x", "y"), flapsReplicas,
			simulate.Relabels("statefulset.kubernetes.io/pod-name", "other"), simulate.Relabels("statefulset.kubernetes.io/pod-name", ""),
		}
		return f
	})
}

// strays takes a pod out of the selector and brings it back a while later: as long as it has the name,
// nothing can take its place.
func strays(w *simulate.World, rng *rand.Rand) {
	simulate.Relabels("app", "other")(w, rng)
	bringBack(w, 20*time.Second)
}

// bares does so with all labels of a pod.
func bares(w *simulate.World, rng *rand.Rand) {
	simulate.StripsLabels(20*time.Second)(w, rng)
	bringBack(w, 21*time.Second)
}

// bringBack brings pods back into the selector after the time. While one was away, history may have dropped its
// revision: then policy InPlaceOnly leaves it no way, and the user is told so and gives in.
func bringBack(w *simulate.World, after time.Duration) {
	w.After(after, func() {
		for _, o := range w.Pods() {
			if o.Labels["app"] == "other" {
				w.Tell("foreign", "bring %s back", o.Name)
				_ = cluster.Change(w, cluster.UserActor, "", o, func(o *corev1.Pod) { o.Labels["app"] = "web" })
			}
		}
	})
	w.After(10*time.Minute, func() {
		if r := rollingUpdate(present(w)); r.PodUpdatePolicy == v1beta1.InPlaceOnly {
			edit(w, policy(v1beta1.InPlaceIfPossible))
		}
	})
}

// flapsReplicas is an autoscaler that cannot decide.
func flapsReplicas(w *simulate.World, rng *rand.Rand) {
	w.Tell("foreign", "autoscales")
	edit(w, replicas(int32(1+rng.IntN(5))), valid)
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

// Autoscalers, evictions and people who delete pods, with two claims for each: none is left of ordinals that do not run
// where the policy says so, and no ordinal that runs loses one.
func TestClaimsUnderFlaps(t *testing.T) {
	t.Parallel()
	walk := worlds(func(s *v1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates = nil
		both(claimed("data", "log"), retention("Retain", "Delete"))(s)
	})
	walk.Faults = func(seed uint64) simulate.Faults {
		f := simulate.AllFaults(seed)
		f.Passes, f.Foreign, f.Actors = 60, 0.2, []simulate.Actor{simulate.DeletesPods, flapsReplicas, simulate.EvictsPods}
		return f
	}
	walk.Run(t)
}
