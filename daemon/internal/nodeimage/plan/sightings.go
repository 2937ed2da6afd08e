package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// Sightings are when this process first saw pulls begin and end, by its own clock. They may be lost. It is safe for
// concurrent use.
type Sightings struct {
	rounds memory.Objects[map[tally.Key]sighting]
}

// sighting is when one round of pulling was seen to begin and to end. A zero time stands for an event that is not there
// yet, and early for an event that was there at the first look.
type sighting struct{ began, ended time.Time }

// Seen are sightings of one NodeImage.
type Seen struct {
	// Began and Ended are when this process first saw a pull that had begun or ended. Events before its first look are
	// left out, unless their time by the node's clock is in the future.
	Began, Ended map[tally.Key]time.Time
}

// See notes a look at a NodeImage, and returns when this process first saw each of its pulls begin and end.
func (s *Sightings) See(image *v1beta1.NodeImage, now time.Time) Seen {
	began := startTimes(image)
	ended := completions(image)
	seen := Seen{Began: map[tally.Key]time.Time{}, Ended: map[tally.Key]time.Time{}}
	s.rounds.Change(memory.KeyOf(image), func(before map[tally.Key]sighting) (map[tally.Key]sighting, bool) {
		next := map[tally.Key]sighting{}
		for round := range tally.Wanted(&image.Spec) {
			known, looked := before[round]
			known.began = firstSeen(known.began, began, round, looked, now)
			known.ended = firstSeen(known.ended, ended, round, looked, now)
			next[round] = known
			note(seen.Began, round, known.began)
			note(seen.Ended, round, known.ended)
		}
		return next, len(next) > 0
	})
	return seen
}

// early stands for events that were there at the first look.
func early() time.Time { return time.Unix(0, 1) }

// firstSeen returns the sighting of one of the times that a node has reported.
func firstSeen(known time.Time, told map[tally.Key]time.Time, round tally.Key, looked bool, now time.Time) time.Time {
	at, there := told[round]
	switch {
	case !there:
		return time.Time{}
	case !known.IsZero():
		return known
	case looked || at.After(now):
		return now
	}
	return early()
}

func note(times map[tally.Key]time.Time, round tally.Key, at time.Time) {
	if !at.IsZero() && !at.Equal(early()) {
		times[round] = at
	}
}

// Forget drops the sightings of a NodeImage that is gone.
func (s *Sightings) Forget(image types.NamespacedName) { s.rounds.Forget(image) }
