package simulate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/seeds"
)

// walkLimit bounds the passes of one walk.
const walkLimit = 5000

// Walk goes through random worlds. Where it fails it tells the seed, from which the same world is made
// again, and the shortest story that fails in the same way.
type Walk struct {
	// Count is how many worlds there are.
	Count int
	// Start returns a new world in which nothing has happened yet.
	Start func(t testing.TB, seed uint64) (*World, operator.Planner)
	// Faults are the faults that an operator meets. Numbers between 0 and 1 are probabilities; the zero value has no
	// faults.
	Faults func(seed uint64) Faults
	// Unarrived says what in the end is not as the workload wants it.
	Unarrived func(w *World) []string
	// Describe is the workload's spec in the end, for the story.
	Describe func(w *World) string
}

// EditAfter lets a user do something once the time has passed. A walk that fails tries to do without it.
func (w *World) EditAfter(d time.Duration, do func()) {
	w.edits++
	name := fmt.Sprintf("edit%d", w.edits)
	w.After(d, func() {
		if !w.without[name] {
			do()
		}
	})
}

// Run plays every world until it has settled, and demands that it arrived.
func (walk Walk) Run(t *testing.T) {
	t.Helper()
	seeds.Each(t, walk.Count, func(t *testing.T, seed uint64) {
		t.Helper()
		walk.Play(t, seed)
	})
}

// Play plays the world of one seed.
func (walk Walk) Play(t testing.TB, seed uint64) {
	t.Helper()
	w, err := walk.play(t, seed, leftOut())
	if err == nil {
		return
	}
	shortest, left, how := walk.shorten(t, seed, w, err)
	require.NoError(t, err, "-walk=%d, spec %s, the shortest story%s, %d of %d lines, ends with: %v\n%s",
		seed, walk.Describe(shortest), left, shortest.Lines(), w.Lines(), how, shortest.Story())
}

// play plays the world of the seed without what is left out.
func (walk Walk) play(t testing.TB, seed uint64, out cuts) (*World, error) {
	t.Helper()
	w, p := walk.Start(t, seed)
	var faults Faults
	if walk.Faults != nil {
		faults = walk.Faults(seed)
	}
	out.apply(w, &faults)
	err := NewOperator(w, p, faults).Settle(walkLimit)
	if problems := walk.Unarrived(w); err == nil && len(problems) > 0 {
		err = fmt.Errorf("%w: %s", errNotArrived, strings.Join(problems, "; "))
	}
	return w, err
}

var errNotArrived = errors.New("did not arrive")
