package plan

// Reasons of events.
const (
	// EventCreated says that a pod was created.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed says that a pod could not be created, and why.
	EventCreateFailed = "FailedCreate"
	// EventDeleted says that a pod was deleted.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed says that a pod could not be deleted, and why.
	EventDeleteFailed = "FailedDelete"
	// EventStopped says that a pod was stopped because its containers have restarted more often than restartLimit.
	EventStopped = "SuccessfulStop"
	// EventStopFailed says that such a pod could not be stopped, and why.
	EventStopFailed = "FailedStop"
	// EventDuplicate says that two pods were found for one node; one of them is deleted.
	EventDuplicate = "DuplicatePodCreatedOnSameNode"
	// EventTooMany says that more pods run than parallelism allows since it was lowered. All of them go on.
	EventTooMany = "TooManyActivePods"
	// EventPaused says that the job was paused because a pod has failed.
	EventPaused = "Paused"
	// EventContinue says that a paused job goes on.
	EventContinue = "Continue"
	// EventFailedPod says that the job has failed because a pod has.
	EventFailedPod = "FailedPodFound"
	// EventPolicy says that the job has failed because a rule of podFailurePolicy wants that of a failed pod.
	EventPolicy = "PodFailurePolicy"
	// EventDeadline says that the job has failed because activeDeadlineSeconds have passed.
	EventDeadline = "DeadlineExceeded"
	// EventComplete says that the pods of all nodes have ended.
	EventComplete = "JobComplete"
	// EventUnreadable says that a field of the spec cannot be followed.
	EventUnreadable = "InvalidSpec"
)

// Reasons of conditions.
const (
	// ReasonComplete says that the pods of all nodes have ended.
	ReasonComplete = "Complete"
	// ReasonFailed says that the job was given up.
	ReasonFailed = "Failed"
)

// Reasons of entries in status.failures that no container gives.
const (
	// FailureRestarts says that the containers have restarted more often than restartLimit.
	FailureRestarts = "RestartLimitExceeded"
	// FailureGivenUp says that the pod was running when the job failed.
	FailureGivenUp = "JobFailed"
)

// Messages of a job, in status.message.
const (
	// MessageNoNodes says that no node fits the template; the job waits for one.
	MessageNoNodes = "no node fits the pod template"
	// MessagePaused says that spec.paused is true.
	MessagePaused = "the job is paused"
	// MessageServing says that a job that never completes has run on all nodes, and waits for others.
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
