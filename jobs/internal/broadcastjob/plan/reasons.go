package plan

// Reasons of events.
const (
	// EventCreated means that a pod was created.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed means that a pod could not be created; the note has the cause.
	EventCreateFailed = "FailedCreate"
	// EventDeleted means that a pod was deleted.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed means that a pod could not be deleted; the note has the cause.
	EventDeleteFailed = "FailedDelete"
	// EventStopped means that a pod was stopped because its containers have restarted more often than restartLimit.
	EventStopped = "SuccessfulStop"
	// EventStopFailed means that such a pod could not be stopped; the note has the cause.
	EventStopFailed = "FailedStop"
	// EventDuplicate means that two pods were found for one node; one of them is deleted.
	EventDuplicate = "DuplicatePodCreatedOnSameNode"
	// EventTooMany means that more pods run than parallelism allows since it was lowered. All of them continue.
	EventTooMany = "TooManyActivePods"
	// EventPaused means that the job was paused because a pod has failed.
	EventPaused = "Paused"
	// EventContinue means that a paused job continues.
	EventContinue = "Continue"
	// EventFailedPod means that the job has failed because a pod has.
	EventFailedPod = "FailedPodFound"
	// EventPolicy means that the job has failed because a rule of podFailurePolicy demands it for a failed pod.
	EventPolicy = "PodFailurePolicy"
	// EventDeadline means that the job has failed because activeDeadlineSeconds have passed.
	EventDeadline = "DeadlineExceeded"
	// EventComplete means that the pods of all nodes have ended.
	EventComplete = "JobComplete"
	// EventUnreadable means that a field of the spec cannot be followed.
	EventUnreadable = "InvalidSpec"
)

// Reasons of conditions.
const (
	// ReasonComplete means that the pods of all nodes have ended.
	ReasonComplete = "Complete"
	// ReasonFailed means that the job was given up.
	ReasonFailed = "Failed"
)

// Reasons of entries in status.failures that no container gives.
const (
	// FailureRestarts means that the containers have restarted more often than restartLimit.
	FailureRestarts = "RestartLimitExceeded"
	// FailureGivenUp means that the pod was running when the job failed.
	FailureGivenUp = "JobFailed"
)

// Messages of a job, in status.message.
const (
	// MessageNoNodes means that no node fits the template; the job waits for one.
	MessageNoNodes = "no node fits the pod template"
	// MessagePaused means that spec.paused is true.
	MessagePaused = "the job is paused"
	// MessageServing means that a job that never completes has run on all nodes, and waits for others.
	MessageServing = "the pods of all nodes have ended; the job waits for new nodes"
)

// Reasons and Messages are all that users read of this package.
var (
	Reasons = []string{
		EventCreated, EventCreateFailed, EventDeleted, EventDeleteFailed, EventStopped, EventStopFailed, EventDuplicate, EventTooMany,
		EventPaused, EventContinue, EventFailedPod, EventPolicy, EventDeadline, EventComplete, EventUnreadable,
		ReasonComplete, ReasonFailed, FailureRestarts, FailureGivenUp,
	}
	Messages = []string{MessageNoNodes, MessagePaused, MessageServing}
)
