package base

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// restsPerWork is how many times longer than reading and planning took the next pass over an object waits, so that
	// the many events of a large workload's pods cost little more than a twentieth of a core.
	restsPerWork = 20
	// longestRest bounds that, and with it what a pod or an edit waits.
	longestRest = 100 * time.Millisecond
)

// rests are the times between passes over the same object. The events that come meanwhile are seen by one pass. It
// implements Memory; its zero value is empty.
type rests struct {
	mu   sync.Mutex
	ends map[types.NamespacedName]time.Time
}

// begin begins a rest after a pass that took so long to read and to plan.
func (r *rests) begin(name types.NamespacedName, now time.Time, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends == nil {
		r.ends = map[types.NamespacedName]time.Time{}
	}
	r.ends[name] = now.Add(min(restsPerWork*took, longestRest))
}

// left returns how much of the object's rest is left, 0 for nothing.
func (r *rests) left(name types.NamespacedName, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	end, resting := r.ends[name]
	if !resting {
		return 0
	}
	if !end.After(now) {
		delete(r.ends, name)
		return 0
	}
	return end.Sub(now)
}

// Forget drops what is remembered of an object that is gone.
func (r *rests) Forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ends, name)
}
