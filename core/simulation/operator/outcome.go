package operator

import (
	"errors"

	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// ErrCrash means that the operator crashed while it carried out a plan.
var ErrCrash = errors.New("the operator crashed")

// Outcome counts what became of the actions of a plan, in the words of package progress.
type Outcome struct {
	// Done actions were written to their end.
	Done int
	// Stale actions met an object in another version than the plan was made from; the next pass decides again.
	Stale int
	// Blocked actions were refused by admission or validation.
	Blocked int
	// Failed actions met another error.
	Failed int
	// Crashed means that the operator died on the way.
	Crashed bool
}

// Idle means that there was nothing to do.
func (o Outcome) Idle() bool { return o == Outcome{} }

// count adds a result. A claim that stays because it is mounted is none: the server was asked for it, and no more.
func (o *Outcome) count(r *progress.Outcome) {
	switch {
	case errors.Is(r.Err, ErrCrash):
		o.Crashed = true
	case r.ClaimMounted():
	case r.State == progress.Done:
		o.Done++
	case r.State == progress.Stale:
		o.Stale++
	case r.State == progress.Blocked:
		o.Blocked++
	default:
		o.Failed++
	}
}

// add adds what became of further actions.
func (o *Outcome) add(more Outcome) {
	o.Done += more.Done
	o.Stale += more.Stale
	o.Blocked += more.Blocked
	o.Failed += more.Failed
	o.Crashed = o.Crashed || more.Crashed
}
