package simulate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/simulate"
)

// What a failure needs stays in its story; what it does not need is left out.
func TestFailuresAreToldAsShortAsPossible(t *testing.T) {
	acts := 0
	walk := simulate.Walk{
		Faults: func(seed uint64) simulate.Faults {
			f := simulate.AllFaults(seed)
			f.Foreign, f.Actors = 0.2, []simulate.Actor{func(w *simulate.World, _ *rand.Rand) {
				acts++
				w.Tell("foreign", "stands around")
			}}
			return f
		},
		Start: func(_ testing.TB, seed uint64) (*simulate.World, operator.Planner) {
			w := newWorld(cluster.Options{Seed: seed, Flaps: 0.1}, 3)
			told := 0
			for i, image := range []string{"app:2", "app:3", "app:4", "app:5"} {
				w.EditAfter(time.Duration(10*i+10)*time.Second, func() {
					told++
					w.Tell(cluster.UserActor, "wants %s", image)
					wants(w, image)
					if image == "app:4" {
						w.Violate("nobody may want app:4: edit %d", told)
					}
				})
			}
			return w, &miniSet{}
		},
		Unarrived: func(*simulate.World) []string { return nil },
		Describe:  func(*simulate.World) string { return "three pods" },
	}
	failed := &failing{TB: t}
	assert.Panics(t, func() { walk.Play(failed, 7) })
	assert.Positive(t, acts)
	assert.Contains(t, failed.text, "nobody may want app:4: edit 1")
	assert.Contains(t, failed.text, "wants app:4")
	for _, needless := range []string{"wants app:2", "wants app:3", "stands around"} {
		assert.NotContains(t, failed.text, needless)
	}
	assert.Regexp(t, `-without=.*Foreign.*edit1,edit2,edit4`, failed.text)
}
