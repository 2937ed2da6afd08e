package ledger

import (
	"fmt"
	"time"
)

const (
	// firstPause is how long nothing is written after the first refusal of the server, or no answer.
	firstPause = time.Second
	// maxPause is how long it is in the long run.
	maxPause = 30 * time.Second
)

// pauses keep a ledger quiet while the server refuses its writes: each is as long as all before it, until a write
// succeeds. The zero value is none.
type pauses struct {
	last  time.Duration
	until time.Time
	why   error
}

// begin begins a pause.
func (p *pauses) begin(why error, now time.Time) {
	p.last = min(max(2*p.last, firstPause), maxPause)
	p.until, p.why = now.Add(p.last), why
}

// end has the next refusal be the first one.
func (p *pauses) end() { *p = pauses{} }

// err is the answer to a request for a write during a pause; nil if there is no pause.
func (p *pauses) err(now time.Time) error {
	if left := p.until.Sub(now); left > 0 && left <= maxPause {
		return fmt.Errorf("%w (the server is asked again in %s)", p.why, left.Round(time.Second/10))
	}
	return nil
}
