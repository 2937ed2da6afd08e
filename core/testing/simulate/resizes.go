package simulate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Resizes are worlds in which nodes put resizes off for ever, can never give them, or the server refuses them.
type Resizes struct {
	// Ask has the template ask for so much cpu; it asks for 1 from the beginning.
	Ask func(w *World, cpu string)
	// Last does the same once and for all, and lets pods be recreated that have waited so long, in seconds.
	Last func(w *World, cpu string, deadline int32)
	// Given are quantities that pods get in the end, in place or by being recreated.
	Given []string
}

// Check plays the worlds, with faults and without, and demands that they arrive.
func (r Resizes) Check(t *testing.T, all Walk) {
	t.Helper()
	start := all.Start
	all.Count = 100
	all.Start = func(t testing.TB, seed uint64) (*World, Planner) {
		t.Helper()
		w, p := start(t, seed)
		rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation needs no secrecy
		for range 1 + rng.IntN(4) {
			cpu := []string{"2", "40", "100"}[rng.IntN(3)]
			w.EditAfter(time.Duration(rng.IntN(300))*time.Second, func() { r.Ask(w, cpu) })
		}
		cpu, deadline := r.Given[rng.IntN(len(r.Given))], int32(rng.IntN(90)) //nolint:gosec // no more than 90
		w.After(6*time.Minute, func() {
			w.Tell(UserActor, "asks for cpu %s and waits %d s for it", cpu, deadline)
			r.Last(w, cpu, deadline)
		})
		return w, p
	}
	all.Faults = func(seed uint64) Faults {
		if seed%2 == 0 {
			return Faults{}
		}
		return AllFaults(seed)
	}
	all.Run(t)
}
