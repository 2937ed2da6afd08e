package progress

import (
	"errors"
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Refusal is an action that the server refuses.
type Refusal struct {
	// Action is the action.
	Action *action.Action
	// Message is the server's, such as that of an admission webhook.
	Message string
	// RetryAfter is the pause before it is tried again.
	RetryAfter time.Duration
}

// Outcome is what became of a plan.
type Outcome struct {
	// Results are those of the actions that were tried, in the plan's order.
	Results []Result
	// Blocked are the refused ones among them.
	Blocked []Refusal
	// Stale is the number of actions that met a changed world.
	Stale int
	// Ended says that not all of the plan was tried.
	Ended bool
	// RetryAfter is the shortest time after which an action that is not done is worth another try; 0
	// when there is none.
	RetryAfter time.Duration
	// Err joins the errors of the failed actions.
	Err error
}

// Done counts the actions with the verb that are done.
func (o *Outcome) Done(v action.Verb) int {
	n := 0
	for i := range o.Results {
		if o.Results[i].State == Done && o.Results[i].Action.Verb == v {
			n++
		}
	}
	return n
}

// add counts a result; pause is the time before its action is tried again.
func (o *Outcome) add(r Result, pause time.Duration) {
	o.Results = append(o.Results, r)
	switch r.State {
	case Done:
		return
	case Stale:
		o.Stale++
	case Failed:
		o.Err = errors.Join(o.Err, r.Err)
	case Blocked:
		o.Blocked = append(o.Blocked, Refusal{Action: r.Action, Message: message(r.Err), RetryAfter: pause})
	}
	o.retryIn(pause)
}

func (o *Outcome) retryIn(d time.Duration) {
	if o.RetryAfter == 0 || d < o.RetryAfter {
		o.RetryAfter = d
	}
}

// Result says what of the outcome a status tells.
func (o *Outcome) Result() action.Result {
	result := action.Result{InVain: len(o.Results) > 0}
	for i := range o.Results {
		r := &o.Results[i]
		result.InVain = result.InVain && r.State != Done && r.Action.Again
		if r.Mounted() {
			continue
		}
		if r.told != "" {
			result.Tell(r.Action.Verb, r.told)
		}
		if r.State == Blocked && result.Blocked == "" {
			result.Blocked = message(r.Err)
		}
	}
	return result
}
