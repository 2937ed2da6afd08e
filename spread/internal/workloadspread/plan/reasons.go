package plan

// Reasons of events.
const (
	// EventCreatePodFailed says that a place was kept for a pod that did not appear.
	EventCreatePodFailed = "CreatePodFailed"
	// EventDeletePodFailed says that a pod still runs whose deletion was admitted, or that one could not be deleted that
	// cannot be scheduled.
	EventDeletePodFailed = "DeletePodFailed"
	// EventRescheduled says that a pod was deleted because it could not be scheduled in its subset.
	EventRescheduled = "RescheduledPod"
	// EventRecovered says that a subset gets pods again that had some that could not be scheduled.
	EventRecovered = "RecoverSchedulable"
	// EventCostFailed says that a pod's subset or its deletion cost could not be written.
	EventCostFailed = "PatchPodDeletionCostFailed"
	// EventTargetUnknown says that the operator may not read the target, or finds an invalid number of replicas at a path of the user.
	EventTargetUnknown = "TargetUnknown"
)

// Reasons are all reasons of events, in the order in which the feature's page explains them.
var Reasons = []string{EventCreatePodFailed, EventDeletePodFailed, EventRescheduled, EventRecovered, EventCostFailed, EventTargetUnknown}
