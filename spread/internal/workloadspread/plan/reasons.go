package plan

// Reasons of events.
const (
	// EventCreatePodFailed reports that a place was kept for a pod that did not appear.
	EventCreatePodFailed = "CreatePodFailed"
	// EventDeletePodFailed reports that a pod still runs after its deletion was admitted, or that a pod that cannot be
	// scheduled could not be deleted.
	EventDeletePodFailed = "DeletePodFailed"
	// EventRescheduled reports that a pod was deleted because it could not be scheduled in its subset.
	EventRescheduled = "RescheduledPod"
	// EventRecovered reports that a subset gets pods again that had some that could not be scheduled.
	EventRecovered = "RecoverSchedulable"
	// EventCostFailed reports that a pod's subset or its deletion cost could not be written.
	EventCostFailed = "PatchPodDeletionCostFailed"
	// EventTargetUnknown reports that the operator may not read the target, or finds an invalid number of replicas at a
	// path of the user.
	EventTargetUnknown = "TargetUnknown"
)

// Reasons are all reasons of events, in the order in which the feature's page explains them.
var Reasons = []string{EventCreatePodFailed, EventDeletePodFailed, EventRescheduled, EventRecovered, EventCostFailed, EventTargetUnknown}
