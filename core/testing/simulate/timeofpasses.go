package simulate

import "math/rand/v2"

const (
	// mostInTime is how many actions of a plan a pass has the time for at most, where time is short.
	mostInTime = 5
	// shortOfTime is the name of that among what can be left out of a world.
	shortOfTime = "Slices"
)

// timeOfPasses is how many actions of a plan each pass has the time for. It takes its chances apart from the rest.
type timeOfPasses struct {
	rng  *rand.Rand
	most int // 0 for enough for all
}

// newTimeOfPasses has passes do all of their plans in a calm world and in a third of the others, and a single action in
// another third.
func newTimeOfPasses(w *World, f Faults) timeOfPasses {
	t := timeOfPasses{rng: rand.New(rand.NewPCG(f.Seed+1, w.Options.Seed<<8+w.operators))} //nolint:gosec // a simulation needs no secrecy
	if !w.Options.Calm && !w.without[shortOfTime] {
		t.most = []int{0, 1, mostInTime}[t.rng.IntN(3)]
	}
	return t
}

// spent is progress.Options.Spent of one pass. A share of the time is used up by chance.
func (t timeOfPasses) spent() func(share float64) bool {
	if t.most == 0 {
		return nil
	}
	left := t.rng.IntN(t.most)
	return func(share float64) bool {
		left--
		return left < 0 || share < 1 && t.rng.IntN(2) == 0
	}
}
