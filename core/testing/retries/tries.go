package retries

import (
	"fmt"
	"time"
)

// What quiet under refusal allows in worlds that are not of this package.
const (
	triesAtFirst  = 10               // in the first atFirst
	atFirst       = 10 * time.Second // after a refusal
	triesInStep   = 2                // in triesLongStep in the long run,
	triesTilCalm  = 6                // which begins after so many
	triesLongStep = 58 * time.Second // two pauses of half a minute, each a second shorter for what was never tried
)

// Tries limits how often a writer retries a refused write. Worlds that are not of this package count their refusals
// with it. The zero value has counted nothing.
type Tries struct{ refused map[string][]time.Time }

// Refused counts that a write was refused, whose name says what is written into which object. The error says that
// it was tried too often.
func (t *Tries) Refused(write string, now time.Time) error {
	if t.refused == nil {
		t.refused = map[string][]time.Time{}
	}
	all := append(t.refused[write], now)
	t.refused[write] = all
	if n := len(all) - 1 - triesAtFirst; n >= 0 && now.Sub(all[n]) < atFirst {
		return fmt.Errorf("more than %d tries of %s in %s", triesAtFirst, write, atFirst)
	}
	if n := len(all) - 1 - triesInStep; n >= triesTilCalm && now.Sub(all[n]) < triesLongStep {
		return fmt.Errorf("more than %d tries of %s in %s after %d", triesInStep, write, triesLongStep, triesTilCalm)
	}
	return nil
}

// Taken forgets the refusals of a write, which the server has taken.
func (t *Tries) Taken(write string) { delete(t.refused, write) }

// Waits says that the last try of a write was refused.
func (t *Tries) Waits(write string) bool { return len(t.refused[write]) > 0 }
