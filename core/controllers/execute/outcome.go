package execute

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// State is how an action ended.
type State string

// The states of an action that was tried.
const (
	// Done actions are written completely.
	Done State = "Done"
	// Stale actions met an object that had changed, gone or appeared since it was judged. That is no
	// error: the event of that change brings the workload back, or a pause does.
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

	retryAfter time.Duration // what the server asks for
	late       bool          // writes of the action were done before, or it was rehearsed
	told       string        // what a status tells of it, empty for nothing
	gone       bool          // the world has lost or gained an object that the plan counted
	fatal      bool          // the next action would meet the same error
	alone      bool          // what is in the way of this action says nothing of the others, even in a slow start
}

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

// Result says what of the outcome a status tells. That a claim stays because a pod mounts it is no failure: it may
// be so for ever.
func (o *Outcome) Result() action.Result {
	var result action.Result
	for i := range o.Results {
		r := &o.Results[i]
		if errors.Is(r.Err, ErrMounted) {
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

// Text says why the action is not done, in words that are the same for every name that is made up for it.
func (r *Result) Text() string { return r.Action.Unnamed(r.Err.Error()) }
