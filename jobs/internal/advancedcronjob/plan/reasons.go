package plan

// Reasons of events.
const (
	// EventCreated means that a job was made.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed means that a job could not be made.
	EventCreateFailed = "FailedCreate"
	// EventDeleted means that a job was deleted, because the history limit is exceeded or because the next one replaces it.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed means that a job could not be deleted.
	EventDeleteFailed = "FailedDelete"
	// EventCompleted means that a job has ended.
	EventCompleted = "SawCompletedJob"
	// EventMissed means that a run was missed because startingDeadlineSeconds had passed.
	EventMissed = "MissSchedule"
	// EventTooMany means that so many runs were missed that they are not counted.
	EventTooMany = "TooManyMissedTimes"
	// EventActive means that a run waits because a job runs and concurrencyPolicy is Forbid.
	EventActive = "JobAlreadyActive"
	// EventInvalid means that the schedule cannot be followed.
	EventInvalid = "UnparseableSchedule"
	// EventNotServed means that the cluster does not serve the kind of the jobs.
	EventNotServed = "KindNotServed"
	// EventForbidden means that the operator lacks the permission to read jobs of the kind.
	EventForbidden = "KindForbidden"
)

// WaitUnknownRun means that the run of a job is unknown.
const WaitUnknownRun = "UnknownRun"

// Reasons of condition Scheduling, and of missed runs.
const (
	// ReasonAsScheduled means that jobs are created on schedule.
	ReasonAsScheduled = "AsScheduled"
	// ReasonPaused means that the AdvancedCronJob was paused.
	ReasonPaused = "Paused"
	// ReasonActive means that another job ran, and concurrencyPolicy is Forbid.
	ReasonActive = "JobActive"
	// ReasonInvalid means that the schedule or the template cannot be followed.
	ReasonInvalid = "InvalidSpec"
	// ReasonNotServed means that the cluster does not serve the kind of the jobs.
	ReasonNotServed = "KindNotServed"
	// ReasonForbidden means that the operator lacks the permission to read jobs of the kind.
	ReasonForbidden = "KindForbidden"
	// ReasonRefused means that the server did not take the job.
	ReasonRefused = "CreateRefused"
	// ReasonDeadline means that startingDeadlineSeconds had passed before the run could begin.
	ReasonDeadline = "DeadlineExceeded"
	// ReasonLate means that the job was not made in time: the manager did not run, or a later run was due
	// already.
	ReasonLate = "Late"
	// ReasonTakenOver means that the runs were due before OpenKruise handed the AdvancedCronJob over, and that
	// it is unknown whether they were made.
	ReasonTakenOver = "TakenOver"
)

// Reasons of condition LastRunSucceeded.
const (
	// ReasonRunSucceeded means that the run that ended last has succeeded.
	ReasonRunSucceeded = "RunSucceeded"
	// ReasonRunFailed means that the run that ended last has failed.
	ReasonRunFailed = "RunFailed"
)

// Reasons are all that users read of this package.
var Reasons = []string{
	WaitUnknownRun,
	EventCreated, EventCreateFailed, EventDeleted, EventDeleteFailed, EventCompleted, EventMissed, EventTooMany, EventActive,
	EventInvalid, EventNotServed, EventForbidden,
	ReasonAsScheduled, ReasonPaused, ReasonActive, ReasonInvalid, ReasonNotServed, ReasonForbidden, ReasonRefused, ReasonDeadline,
	ReasonLate, ReasonTakenOver, ReasonRunSucceeded, ReasonRunFailed,
}
