package plan

// Reasons of events on the set.
const (
	// EventCreated reports a new pod.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed reports that a pod could not be created.
	EventCreateFailed = "FailedCreate"
	// EventDeleted reports that a pod was deleted.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed reports that a pod could not be deleted.
	EventDeleteFailed = "FailedDelete"
	// EventUpdateFailed reports that a pod could not be changed.
	EventUpdateFailed = "FailedUpdate"
	// EventPodFailed reports a failed pod that another one replaces.
	EventPodFailed = "FailedDaemonPod"
	// EventPodSucceeded reports a pod that has ended by itself and that another one replaces.
	EventPodSucceeded = "SucceededDaemonPod"
	// EventPlacementFailed reports a pod for which its node has no room.
	EventPlacementFailed = "FailedPlacement"
	// EventSelectsAll reports that the selector is empty.
	EventSelectsAll = "SelectingAll"
	// EventDeleteCancelled reports that a pod that a hook held back from deletion is needed again.
	EventDeleteCancelled = "PreDeleteCancelled"
	// EventGateMissing reports that a pod lacks the readiness gate with which a hook takes it out of service.
	EventGateMissing = "ReadinessGateMissing"
)

// Reasons of waits.
const (
	// WaitMaxUnavailable means that a pod is replaced once others are available.
	WaitMaxUnavailable = "MaxUnavailable"
	// WaitMaxSurge means that a new pod next to an old one is made once others are available.
	WaitMaxSurge = "MaxSurge"
)

// Reasons are all that users read of this package.
var Reasons = []string{
	EventCreated, EventCreateFailed, EventDeleted, EventDeleteFailed, EventUpdateFailed, EventPodFailed, EventPodSucceeded,
	EventPlacementFailed, EventSelectsAll, EventDeleteCancelled, EventGateMissing,
	WaitMaxUnavailable, WaitMaxSurge,
}
