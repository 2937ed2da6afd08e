package plan

// Reasons of events.
const (
	// EventCreated says that a job was made.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed says that a job could not be made.
	EventCreateFailed = "FailedCreate"
	// EventDeleted says that a job was deleted, because the history limit is exceeded or because the next one replaces it.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed says that a job could not be deleted.
	EventDeleteFailed = "FailedDelete"
	// EventCompleted says that a job has ended.
	EventCompleted = "SawCompletedJob"
	// EventMissed says that a run was missed because startingDeadlineSeconds had passed.
	EventMissed = "MissSchedule"
	// EventTooMany says that so many runs were missed that they are not counted.
	EventTooMany = "TooManyMissedTimes"
	// EventActive says that a run waits because a job runs and concurrencyPolicy is Forbid.
	EventActive = "JobAlreadyActive"
	// EventInvalid says that the schedule cannot be followed.
	EventInvalid = "UnparseableSchedule"
	// EventNotServed says that the cluster does not serve the kind of the jobs.
	EventNotServed = "KindNotServed"
	// EventForbidden says that the operator lacks the permission to read jobs of the kind.
	EventForbidden = "KindForbidden"
)

// WaitUnknownRun says that nothing tells for which run a job was made.
const WaitUnknownRun = "UnknownRun"

// Reasons of condition Scheduling, and of missed runs.
const (
	// ReasonAsScheduled says that jobs are created on schedule.
	ReasonAsScheduled = "AsScheduled"
	// ReasonPaused says that the AdvancedCronJob was paused.
	ReasonPaused = "Paused"
	// ReasonActive says that another job ran, and concurrencyPolicy is Forbid.
	ReasonActive = "JobActive"
	// ReasonInvalid says that the schedule or the template cannot be followed.
	ReasonInvalid = "InvalidSpec"
	// ReasonNotServed says that the cluster does not serve the kind of the jobs.
	ReasonNotServed = "KindNotServed"
	// ReasonForbidden says that the operator lacks the permission to read jobs of the kind.
	ReasonForbidden = "KindForbidden"
	// ReasonRefused says that the server did not take the job.
	ReasonRefused = "CreateRefused"
	// ReasonDeadline says of a missed run that startingDeadlineSeconds had passed before it could begin.
	ReasonDeadline = "DeadlineExceeded"
	// ReasonLate says of a missed run that nobody made the job in time: the manager did not run, or a later run was due
	// already.
	ReasonLate = "Late"
	// ReasonTakenOver says of missed runs that they were due before OpenKruise handed the AdvancedCronJob over, and that
	// nothing tells whether they were made.
	ReasonTakenOver = "TakenOver"
)

// Reasons of condition LastRunSucceeded.
const (
	// ReasonRunSucceeded says that the run that ended last has succeeded.
	ReasonRunSucceeded = "RunSucceeded"
	// ReasonRunFailed says that the run that ended last has failed.
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
