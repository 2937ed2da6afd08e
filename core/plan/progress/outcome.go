package progress

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// State is how an action ended.
type State string

// The states of an action that was tried.
const (
	// Done actions are written completely.
	Done State = "Done"
	// Stale actions met an object that has changed, gone or appeared since the snapshot was taken. That is no error: the
	// event of that change, or a pause, brings the workload back.
	Stale State = "Stale"
	// Blocked actions were refused by admission or validation.
	Blocked State = "Blocked"
	// Failed actions met an error of the server, of the network or of the operator's permissions.
	Failed State = "Failed"
)

// Outcome is how one action ended.
type Outcome struct {
	// Action is the action.
	Action *action.Action
	// State is how it ended.
	State State
	// Object is the object as the server returned it last: complete after a create, its metadata
	// after a patch, nil after a delete and where nothing was written.
	Object action.Object
	// Err is the reason why an action is not done; it names the attempted action.
	Err error
	// Late is true if writes of an action that is not done were done before, or if a dry run of it was refused by anything
	// but a disruption budget.
	Late bool

	retryAfter time.Duration // the pause that the server asks for
	told       action.Told   // the report in a status
	gone       bool          // an object that the plan counted has gone or appeared
	fatal      bool          // the next action would meet the same error
	isolated   bool          // the cause affects this action only, even in a slow start
	overtaken  bool          // another writer was first, as the server has shown
	busy       bool          // the server has not looked at the action
}

// Overtaken returns the outcome of a conflict after which the server has shown that another writer was first.
func Overtaken(err error) Outcome {
	return Outcome{State: Stale, Err: err, overtaken: true}
}

// FailureText is the reason why the action is not done, in words that are the same for every name that is made up for
// it.
func (r *Outcome) FailureText() string { return r.Action.WithoutGeneratedName(r.Err.Error()) }

// ClaimMounted reports whether a claim stays because a pod mounts it. That is no failure and is not reported: it may be
// so permanently.
func (r *Outcome) ClaimMounted() bool { return errors.Is(r.Err, errClaimMounted) }

// failure is the remembered part of an outcome that is not done.
func (r *Outcome) failure() refusals.Failure {
	f := refusals.Failure{
		Message:          r.FailureText(),
		RetryAfter:       r.retryAfter,
		Late:             r.Late,
		MayHaveSucceeded: r.State == Failed && MayHaveSucceeded(r.Err),
		Conflict:         r.State == Stale,
		Overtaken:        r.overtaken,
		Isolated:         r.isolated || apierrors.IsAlreadyExists(r.Err), // one name is no evidence about others
		NodeTooSmall:     apierrors.HasStatusCause(r.Err, NodeCapacityCause),
		ByBudget:         isBudget(r.Err),
	}
	if r.ClaimMounted() {
		f.Message = ""
	}
	return f
}
