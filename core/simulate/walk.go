package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walkLimit bounds the passes of one walk.
const walkLimit = 5000

// Walk goes through random worlds. Where it fails it tells the seed, from which the same world is made
// again.
type Walk struct {
	// From is the first seed, Count how many follow each other.
	From uint64
	// Count is how many worlds there are.
	Count int
	// Start makes the world of a seed.
	Start func(t testing.TB, seed uint64) (*World, Planner)
	// Faults are those of a seed; nil for none.
	Faults func(seed uint64) Faults
	// Unarrived says what in the end is not as the workload wants it.
	Unarrived func(w *World) []string
	// Describe is the workload's spec in the end, for the story.
	Describe func(w *World) string
}

// Run plays every world until it has settled, and demands that it arrived.
func (walk Walk) Run(t testing.TB) {
	t.Helper()
	for seed := walk.From; seed < walk.From+uint64(walk.Count); seed++ {
		w, p := walk.Start(t, seed)
		var faults Faults
		if walk.Faults != nil {
			faults = walk.Faults(seed)
		}
		err := NewOperator(w, p, faults).Settle(walkLimit)
		if problems := walk.Unarrived(w); err == nil && len(problems) > 0 {
			err = fmt.Errorf("did not arrive: %s", strings.Join(problems, "; "))
		}
		if err != nil {
			require.NoError(t, err, "-walk=%d, spec %s, the story:\n%s", seed, walk.Describe(w), w.Story())
		}
	}
}
