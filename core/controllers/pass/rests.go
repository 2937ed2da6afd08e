package pass

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"
)

const (
	// restsPerWork is how many times longer than reading and planning took the next pass over an object waits, so that
	// the many events of a large workload's pods cost little more than a twentieth of a core.
	restsPerWork = 20
	// longestRest bounds that, and with it the wait of a pod or an edit.
	longestRest = 100 * time.Millisecond
)

// rests are the times between passes over the same object. One pass sees all events that arrive during a rest. A rest
// belongs to a name: the object with the name is not known before a pass, and an object that is created again rests no
// longer than any other. The zero value is empty.
type rests struct{ memory.Objects[time.Time] }

// begin begins a rest after a pass that took so long to read and to plan.
func (r *rests) begin(name types.NamespacedName, now time.Time, took time.Duration) {
	r.Set(memory.Key{NamespacedName: name}, now.Add(min(restsPerWork*took, longestRest)))
}

// left returns how much of the object's rest is left, 0 for nothing.
func (r *rests) left(name types.NamespacedName, now time.Time) time.Duration {
	end, resting := r.Get(memory.Key{NamespacedName: name})
	if !resting {
		return 0
	}
	if !end.After(now) {
		r.Forget(name)
		return 0
	}
	return end.Sub(now)
}
