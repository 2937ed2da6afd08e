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
	// Message is the server's, such as the message of an admission webhook.
	Message string
	// RetryAfter is the pause before it is tried again.
	RetryAfter time.Duration
}

// Result is the result of carrying out a plan.
type Result struct {
	// Outcomes are the outcomes of the actions that were tried, in the plan's order.
	Outcomes []Outcome
	// Blocked are the refused ones among them.
	Blocked []Refusal
	// Stale is the number of actions with outcome Stale.
	Stale int
	// Incomplete is true if not all of the plan was tried.
	Incomplete bool
	// Spent is true if the time of the pass was used up, or a step left out some of the wanted actions: another pass can
	// continue at once.
	Spent bool
	// RetryAfter is the shortest time after which an action that is not done is worth another try; 0
	// when there is none.
	RetryAfter time.Duration
	// Err joins the errors of the failed actions.
	Err error
}

// Done counts the actions with the verb that are done.
func (o *Result) Done(v action.Verb) int {
	n := 0
	for i := range o.Outcomes {
		if o.Outcomes[i].State == Done && o.Outcomes[i].Action.Verb == v {
			n++
		}
	}
	return n
}

// add counts an outcome; pause is the time before its action is tried again.
func (o *Result) add(r Outcome, pause time.Duration) {
	o.Outcomes = append(o.Outcomes, r)
	switch r.State {
	case Done:
		return
	case Stale:
		o.Stale++
	case Failed:
		o.Err = errors.Join(o.Err, r.Err)
	case Blocked:
		o.Blocked = append(o.Blocked, Refusal{
			Action:     r.Action,
			Message:    message(r.Err),
			RetryAfter: pause,
		})
	}
	o.retryIn(pause)
}

func (o *Result) retryIn(d time.Duration) {
	if o.RetryAfter == 0 || d < o.RetryAfter {
		o.RetryAfter = d
	}
}

// Failures returns the failures of the result for a status.
func (o *Result) Failures() action.Failures {
	result := action.Failures{NoProgress: len(o.Outcomes) > 0 && !o.Spent}
	for i := range o.Outcomes {
		r := &o.Outcomes[i]
		result.NoProgress = result.NoProgress && r.State != Done && r.Action.RefusedBefore
		if r.ClaimMounted() {
			continue
		}
		result.Add(r.Action.Verb, r.told)
		if r.State == Blocked && result.Blocked == "" {
			result.Blocked = message(r.Err)
		}
	}
	return result
}
