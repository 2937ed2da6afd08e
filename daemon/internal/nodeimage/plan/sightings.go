package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// Sightings are when this process first saw that pulls had ended, by its own clock. They may be lost. It is safe for
// concurrent use.
type Sightings struct {
	rounds memory.Objects[map[tally.Key]time.Time]
}

// See notes a look at a NodeImage, and returns when this process first saw each of its results. A result that was there
// at the first look is left out.
func (s *Sightings) See(image *v1beta1.NodeImage, now time.Time) map[tally.Key]time.Time {
	ended, first := completions(image), map[tally.Key]time.Time{}
	s.rounds.Change(memory.KeyOf(image), func(before map[tally.Key]time.Time) (map[tally.Key]time.Time, bool) {
		// The zero time stands for a round that is not over, and the absence of one for a result that was there before.
		next := map[tally.Key]time.Time{}
		for round := range tally.Wanted(&image.Spec) {
			_, over := ended[round]
			at, known := before[round]
			switch {
			case !over:
				next[round] = time.Time{}
			case known && at.IsZero():
				next[round], first[round] = now, now
			case known:
				next[round], first[round] = at, at
			}
		}
		return next, len(next) > 0
	})
	return first
}

// Forget drops what is known of a NodeImage that is gone.
func (s *Sightings) Forget(image types.NamespacedName) { s.rounds.Forget(image) }
