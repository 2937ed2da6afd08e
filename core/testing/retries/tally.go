package retries

import (
	"time"
)

// What quiet under refusal allows for one object in the way: at first, and a minute in the long run. An edit
// of the workload, a pod that becomes available, and an object that somebody takes away are worth another try.
const (
	retriesAtFirst   = 8
	retriesPerMinute = 2
	retriesPerCause  = 3
)

// tally counts what is to be rare.
type tally struct {
	begun     time.Time
	n, causes int
	names     map[string]bool // of the objects, where they are several
	purposes  int             // that are tried, each for itself, where they are several
}

// add counts one more. It returns how many there may be, and whether there are more.
func (t *tally) add(now time.Time) (most int, tooMany bool) {
	if t.n == 0 {
		t.begun = now
	}
	t.n++
	others := max(len(t.names)-1, 0)
	minutes := int(now.Sub(t.begun) / time.Minute)
	most = retriesAtFirst + retriesPerMinute*minutes*max(1+others, t.purposes) + retriesPerCause*(t.causes+others)
	return most, t.n > most
}

// tallyOf returns the tally of a key.
func tallyOf[K comparable](all map[K]*tally, key K) *tally {
	if all[key] == nil {
		all[key] = &tally{names: map[string]bool{}}
	}
	return all[key]
}
