package simulate

import (
	"time"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// Edit is an edit by a user, with its line in the story.
type Edit struct {
	// The line in the story.
	What string
	// Do makes the edit.
	Do func()
	// Ready, if set, reports whether the user may make the edit. The user waits for it, but at most userTimeout.
	Ready func() bool
}

const (
	// userTimeout is how long a user waits before an edit at most.
	userTimeout = 10 * time.Minute
	// userPoll is the interval at which a waiting user checks.
	userPoll = 10 * time.Second
)

// Edits makes the first edit after a minute, and each further one the interval after the previous one.
func (w *World) Edits(interval time.Duration, edits ...Edit) { w.edit(time.Minute, interval, 0, edits) }

func (w *World) edit(after, interval, waited time.Duration, edits []Edit) {
	if len(edits) == 0 {
		return
	}
	w.After(after, func() {
		e := edits[0]
		if e.Ready != nil && !e.Ready() && waited < userTimeout {
			w.edit(userPoll, interval, waited+userPoll, edits)
			return
		}
		w.Tell(cluster.UserActor, "%s", e.What)
		e.Do()
		w.edit(interval, interval, 0, edits[1:])
	})
}
