package cover

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// owningTTL is how long it is remembered whether a target owns pods. A pass over its budget finds it out again.
	owningTTL = time.Second
	// owningSize is of how many targets.
	owningSize = 10_000
)

// Owning remembers for a moment which targets own active pods: the question comes with each pod that the scale of a target
// selects, and the answer costs as much as the target has pods. It is safe for concurrent use. A nil one remembers nothing.
type Owning struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	has *lru.Cache // types.UID to owning
}

type owning struct {
	pods bool
	asOf time.Time
}

// NewOwning returns an Owning that knows nothing yet.
func NewOwning(c clock.PassiveClock) *Owning { return &Owning{clock: c, has: lru.New(owningSize)} }

// begin returns the time as of which pods are read.
func (o *Owning) begin() time.Time {
	if o == nil {
		return time.Time{}
	}
	return o.clock.Now()
}

// get reports whether the target owns active pods, if that is known.
func (o *Owning) get(target types.UID) (pods, known bool) {
	if o == nil {
		return false, false
	}
	if last, ok := o.has.Get(target); ok && o.clock.Now().Sub(last.(owning).asOf) < owningTTL {
		return last.(owning).pods, true
	}
	return false, false
}

// set remembers an answer, unless a later one is known.
func (o *Owning) set(target types.UID, asOf time.Time, pods bool) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.has.Get(target); !ok || !asOf.Before(last.(owning).asOf) {
		o.has.Add(target, owning{pods, asOf})
	}
}
