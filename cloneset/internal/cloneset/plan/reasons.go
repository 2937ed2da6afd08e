package plan

// Reasons of events on the set.
const (
	// EventCreated tells of a new pod.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed tells that a pod or its claims could not be created.
	EventCreateFailed = "FailedCreate"
	// EventDeleted tells that a pod was deleted.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed tells that a pod or a claim could not be deleted.
	EventDeleteFailed = "FailedDelete"
	// EventRecreated tells that a pod was deleted for its update.
	EventRecreated = "SuccessfulUpdatePodReCreate"
	// EventRecreateFailed tells that a pod could not be deleted for its update.
	EventRecreateFailed = "FailedUpdatePodReCreate"
	// EventUpdateFailed tells that a claim could not be given to another owner.
	EventUpdateFailed = "FailedUpdate"
	// EventScaleUpLimited tells that pods are missing that scaleStrategy.maxUnavailable does not let start.
	EventScaleUpLimited = "ScaleUpLimited"
	// EventPodFailed tells why a pod has ended in phase Failed.
	EventPodFailed = "PodFailed"
)

// Reasons of waits.
const (
	// WaitMaxUnavailable means that an update or a deletion waits until other pods are available.
	WaitMaxUnavailable = "MaxUnavailable"
	// WaitScaleLimit means that new pods wait for scaleStrategy.maxUnavailable.
	WaitScaleLimit = "ScaleMaxUnavailable"
	// WaitClaimsInUse means that a new pod waits for one that is going, whose claims it is to have.
	WaitClaimsInUse = "ClaimsInUse"
	// WaitClaimTemplateRemoved means that pods of an older revision cannot be created, because they mount a volume whose
	// claim template was removed, and no claim for it is free.
	WaitClaimTemplateRemoved = "ClaimTemplateRemoved"
)

// Reasons are all that users read of this package.
var Reasons = []string{
	EventCreated, EventCreateFailed, EventDeleted, EventDeleteFailed, EventRecreated, EventRecreateFailed, EventUpdateFailed,
	EventScaleUpLimited, EventPodFailed, WaitMaxUnavailable, WaitScaleLimit, WaitClaimsInUse, WaitClaimTemplateRemoved,
}
