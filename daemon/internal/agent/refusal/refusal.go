package refusal

import "time"

// A write that is refused is tried again after firstPause, then after twice as long, at most LastPause. No event
// brings it back earlier, unless another version was in the way, and that not for the excused'th time in a row.
const (
	firstPause = time.Second
	LastPause  = 30 * time.Second
	excused    = 3
)

// Refusal is what is known of an object whose last write did not succeed. The zero value is that of all others.
type Refusal struct {
	version  string // that was judged
	outdated bool   // another version may do better
	tries    int    // in a row
	pause    time.Duration
	until    time.Time
}

// Left returns how long to write nothing into the object, which has the version now; 0 for a write at once.
func (r Refusal) Left(version string, now time.Time) time.Duration {
	if r.outdated && r.tries < excused && r.version != version {
		return 0
	}
	return max(r.until.Sub(now), 0)
}

// Again returns the refusal after one more write that did not succeed, and the pause until the next one. Outdated says
// that the object of the version had changed or gone since it was judged.
func (r Refusal) Again(version string, outdated bool, now time.Time) (next Refusal, pause time.Duration) {
	pause = min(max(2*r.pause, firstPause), LastPause)
	return Refusal{version: version, outdated: outdated, tries: r.tries + 1, pause: pause, until: now.Add(pause)}, pause
}
