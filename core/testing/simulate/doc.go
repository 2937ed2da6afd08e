// Package simulate is a small world in memory in which plans are played: the rules of an API
// server, a scheduler, a kubelet with bad manners, a garbage collector, and an operator that can
// crash, read stale caches and meet errors.
//
// A seed, objects and a Planner go in; the objects in the end, every event on the way, a count of
// writes and a readable story come out. Time is virtual, nothing sleeps, and the same seed plays
// the same way every time. It stands in for a cluster in tests of plans and must never be imported
// by anything else; what a real server answers is proven on a real server.
//
// What a test reads from the world is shared and read-only, just as in a real cache.
//
// A feature writes the glue from View to its snapshot and gets the rest:
//
//	planner := simulate.PlannerFunc(func(v *simulate.View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
//		set := simulate.Get[*v1beta1.CloneSet](v, "default", "web")
//		pods := simulate.ListOwned[*corev1.Pod](v, set.UID)
//		p := plan.Compute(plan.Snapshot{Set: set, Pods: pods, Now: now, Seed: seed})
//		return append(p.Steps, simulate.StatusStep(set, p.Status)), p.WakeAfter
//	})
//	w := simulate.New(simulate.Options{Seed: 1}, set)
//	w.CheckInPlace()
//	w.Limit("pods", func(v *simulate.View) int { return len(v.Active(set.UID)) }, replicas)
//	simulate.Settle(t, w, planner, 500)
//	simulate.CompareStory(t, w, "testdata/rollout.txt")
//
// CrashSweep repeats such a run with a crash after every write, Explore repeats it for many seeds
// and Faults.
package simulate
