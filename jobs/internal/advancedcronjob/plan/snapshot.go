package plan

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Snapshot is the input of the plan for one AdvancedCronJob, read-only.
type Snapshot struct {
	// Cron is the AdvancedCronJob.
	Cron *v1beta1.AdvancedCronJob
	// Children are the jobs of the template's kind that it controls.
	Children []Child
	// NotServed is true while the cluster does not serve that kind. Then no children are known.
	NotServed bool
	// Forbidden is true while the operator lacks the permission to read that kind. Then no children are known either.
	Forbidden bool
	// Refusals are the writes that the server has refused before.
	Refusals action.Refusals
	// Now is the time of the pass.
	Now time.Time
}

// State is how far a job is.
type State string

// The states of a job.
const (
	Active    State = "Active"
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// Child is a job that the AdvancedCronJob controls.
type Child struct {
	// Object is the job; Kind and APIVersion are its type.
	Object           action.Object
	Kind, APIVersion string
	// State is how far it is. A job that is being deleted and has not ended is active.
	State State
	// Started and Ended are when it started and ended; zero if it has not, or if the time is absent.
	Started, Ended time.Time
}
