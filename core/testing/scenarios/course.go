package scenarios

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// Course is a workload with the edits of its user, for runs that are compared with each other.
type Course struct {
	// Name names the test.
	Name string
	// Start returns a new world in which nothing has happened yet.
	Start func(t testing.TB, o cluster.Options) (*simulate.World, operator.Planner)
	// Arrived fails the test unless the workload's pods are as its spec asks.
	Arrived func(t testing.TB, w *simulate.World)
}

func (c Course) start(t testing.TB, seed uint64) (*simulate.World, operator.Planner) {
	t.Helper()
	w, p := c.Start(t, cluster.Options{Seed: seed})
	for minute := range 3 { // lets passes happen before and after every edit
		for second := range 20 {
			w.After(time.Duration(minute)*time.Minute+time.Duration(second)*time.Second, func() {})
		}
	}
	return w, p
}

// CheckCrashes requires that every course ends in the same state if the operator crashes after any of its writes and
// another one continues.
func CheckCrashes(t *testing.T, courses []Course) {
	t.Helper()
	for _, c := range courses {
		t.Run(c.Name, func(t *testing.T) {
			simulate.CrashSweep(t, func() (*simulate.World, operator.Planner) { return c.start(t, 1) }, func(w *simulate.World) { c.Arrived(t, w) })
		})
	}
}

// Troubles returns the faults that CheckFaults plays, by name.
func Troubles() map[string]func(seed uint64) simulate.Faults {
	return map[string]func(seed uint64) simulate.Faults{
		"stale views":      func(seed uint64) simulate.Faults { return simulate.Faults{Seed: seed, Lag: 10, Interleave: 0.3} },
		"lost events":      func(seed uint64) simulate.Faults { return simulate.Faults{Seed: seed, LostEvents: 0.7} },
		"refused writes":   Refusals,
		"lost answers":     func(seed uint64) simulate.Faults { return simulate.Faults{Seed: seed, Timeout: 0.3} },
		"all at once":      simulate.AllFaults,
		"all and no pause": func(seed uint64) simulate.Faults { f := simulate.AllFaults(seed); f.Passes = 400; return f },
	}
}

// Refusals returns faults of a server that refuses writes.
func Refusals(seed uint64) simulate.Faults {
	return simulate.Faults{
		Seed:            seed,
		Conflict:        0.15,
		TooManyRequests: 0.1,
		InternalError:   0.1,
	}
}

// CheckFaults requires that every course ends, with each of Troubles and in n worlds each, in the same state as without
// faults.
func CheckFaults(t *testing.T, courses []Course, n int) {
	t.Helper()
	troubles := Troubles()
	ends := map[string]string{}
	names := slices.Sorted(maps.Keys(troubles))
	seeds.Each(t, n*len(courses)*len(troubles), func(t *testing.T, seed uint64) {
		t.Helper()
		c := courses[seed%uint64(len(courses))]
		trouble := names[seed/uint64(len(courses))%uint64(len(names))]
		if ends[c.Name] == "" {
			w, p := c.start(t, 1)
			simulate.Settle(t, w, p, sweepLimit)
			c.Arrived(t, w)
			ends[c.Name] = simulate.Digest(w)
		}
		w, p := c.start(t, seed)
		if err := simulate.NewOperator(w, p, troubles[trouble](seed)).Settle(sweepLimit); err != nil {
			require.NoError(t, err, "%s, %s, the story:\n%s", c.Name, trouble, w.Story())
		}
		c.Arrived(t, w)
		if end := simulate.Digest(w); end != ends[c.Name] {
			require.Equal(t, ends[c.Name], end, "%s, %s, the story:\n%s", c.Name, trouble, w.Story())
		}
	})
}

// replayActor is the actor that repeats every write.
const replayActor = "replay"

// CheckReplays requires that every write of every course may be sent twice: the second time it changes nothing or is
// refused.
func CheckReplays(t *testing.T, courses []Course) {
	t.Helper()
	for _, c := range courses {
		t.Run(c.Name, func(t *testing.T) {
			w, p := c.start(t, 1)
			o := simulate.NewOperator(w, p, simulate.Faults{})
			replayed := 0
			for pass := uint64(0); !w.Quiet() || pass < quietWakes; pass++ {
				done, _ := o.Operator.Run(operator.Think(w.Cluster(), p, pass), nil)
				o.Follow(&done)
				for i := range done.Outcomes {
					replay(w, done.Outcomes[i].Action)
					replayed++
				}
				w.Step()
				w.Advance(time.Second)
			}
			require.Positive(t, replayed)
			require.Zero(t, w.Writes(replayActor), "the story:\n%s", w.Story())
			require.Empty(t, w.Violations())
		})
	}
}

func replay(w *simulate.World, a *action.Action) {
	switch a.Verb {
	case action.Create:
		for _, o := range a.Prerequisites {
			_, _ = w.Create(replayActor, o)
		}
		_, _ = w.Create(replayActor, a.Object)
	case action.Delete:
		_ = w.Delete(replayActor, a.Object)
		for _, o := range a.Dependents {
			_ = w.Delete(replayActor, o)
		}
	default:
		object := a.Object
		for _, patch := range a.Patches {
			if n, err := w.Patch(replayActor, object, patch); err == nil {
				object = n
			}
		}
	}
}
