package plan

// Reasons of events on the set.
const (
	// EventCreated reports a new pod.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed reports that a pod or its claims could not be created.
	EventCreateFailed = "FailedCreate"
	// EventDeleted reports that a pod was deleted.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed reports that a pod or a claim could not be deleted.
	EventDeleteFailed = "FailedDelete"
	// EventRecreated reports that a pod was deleted for its update.
	EventRecreated = "SuccessfulUpdatePodReCreate"
	// EventRecreateFailed reports that a pod could not be deleted for its update.
	EventRecreateFailed = "FailedUpdatePodReCreate"
	// EventUpdateFailed reports that a claim could not be given to another owner.
	EventUpdateFailed = "FailedUpdate"
	// EventScaleUpLimited reports that pods are missing that scaleStrategy.maxUnavailable does not let start.
	EventScaleUpLimited = "ScaleUpLimited"
	// EventPodFailed reports why a pod has ended in phase Failed.
	EventPodFailed = "PodFailed"
)

// Reasons of waits.
const (
	// WaitMaxUnavailable means that an update or a deletion waits until other pods are available.
	WaitMaxUnavailable = "MaxUnavailable"
	// WaitScaleLimit means that new pods wait for scaleStrategy.maxUnavailable.
	WaitScaleLimit = "ScaleMaxUnavailable"
	// WaitClaimsInUse means that a new pod waits for a pod that is going, and is to have its claims.
	WaitClaimsInUse = "ClaimsInUse"
	// WaitClaimTemplateRemoved means that pods of an older revision cannot be created, because they mount a volume with
	// a removed claim template, and no claim for it is free.
	WaitClaimTemplateRemoved = "ClaimTemplateRemoved"
)

// Reasons are all that users read of this package.
var Reasons = []string{
	EventCreated, EventCreateFailed, EventDeleted, EventDeleteFailed, EventRecreated, EventRecreateFailed, EventUpdateFailed,
	EventScaleUpLimited, EventPodFailed, WaitMaxUnavailable, WaitScaleLimit, WaitClaimsInUse, WaitClaimTemplateRemoved,
}
