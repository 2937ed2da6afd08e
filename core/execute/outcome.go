package execute

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/action"
)

// State is how an action ended.
type State string

// The states of an action that was tried.
const (
	// Done actions are written completely.
	Done State = "Done"
	// Stale actions met an object that had changed, gone or appeared since it was judged. That is no
	// error: the event of that change brings the workload back, or StaleRetry does.
	Stale State = "Stale"
	// Blocked actions were refused by admission or validation.
	Blocked State = "Blocked"
	// Failed actions met an error of the server, of the network or of the operator's permissions.
	Failed State = "Failed"
)

// Result is how one action ended.
type Result struct {
	// Action is the action.
	Action *action.Action
	// State is how it ended.
	State State
	// Object is the object as the server returned it last: complete after a create, its metadata
	// after a patch, nil after a delete and where nothing was written.
	Object client.Object
	// Err says why an action that is not done is not; it says what was being done.
	Err error

	retryAfter time.Duration
	gone       bool // the world has lost or gained an object that the plan counted
	fatal      bool // the next action would meet the same error
	alone      bool // what is in the way of this action says nothing of the others, even in a slow start
}

// Refusal is an action that the server refuses.
type Refusal struct {
	// Action is the action.
	Action *action.Action
	// Message is the server's, such as that of an admission webhook.
	Message string
	// RetryAfter is the time after which the server asks to try again, or BlockedRetry.
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
	// RetryAfter is the shortest time after which a refused or stale action is worth another try; 0
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

func (o *Outcome) add(r Result) {
	o.Results = append(o.Results, r)
	switch r.State {
	case Done:
	case Stale:
		o.Stale++
		o.retryIn(StaleRetry)
	case Failed:
		o.Err = errors.Join(o.Err, r.Err)
	case Blocked:
		o.Blocked = append(o.Blocked, Refusal{Action: r.Action, Message: message(r.Err), RetryAfter: r.retryAfter})
		o.retryIn(r.retryAfter)
	}
}

func (o *Outcome) retryIn(d time.Duration) {
	if o.RetryAfter == 0 || d < o.RetryAfter {
		o.RetryAfter = d
	}
}

// Result says what of the outcome a status tells.
func (o *Outcome) Result() action.Result {
	var scale, update []error
	for _, result := range o.Results {
		if result.State != Failed && result.State != Blocked {
			continue
		}
		if result.Action.Verb == action.Create || result.Action.Verb == action.Delete {
			scale = append(scale, result.Err)
		} else {
			update = append(update, result.Err)
		}
	}
	result := action.Result{ScaleError: first(scale), UpdateError: first(update)}
	if len(o.Blocked) > 0 {
		result.Blocked = o.Blocked[0].Message
	}
	return result
}

// first is the text of the errors, shortened to one and the number of others.
func first(errs []error) string {
	switch len(errs) {
	case 0:
		return ""
	case 1:
		return errs[0].Error()
	}
	return fmt.Sprintf("%v (and %d more)", errs[0], len(errs)-1)
}
