package plan

// Reasons of events on the set.
const (
	// EventCreated reports a new pod or claim.
	EventCreated = "SuccessfulCreate"
	// EventCreateFailed reports that a pod or a claim could not be created.
	EventCreateFailed = "FailedCreate"
	// EventDeleted reports that a pod was deleted.
	EventDeleted = "SuccessfulDelete"
	// EventDeleteFailed reports that a pod could not be deleted.
	EventDeleteFailed = "FailedDelete"
	// EventUpdated reports that labels of a pod were put right.
	EventUpdated = "SuccessfulUpdate"
	// EventUpdateFailed reports that a pod or a claim could not be changed.
	EventUpdateFailed = "FailedUpdate"
	// EventResized reports that a claim was asked to grow.
	EventResized = "SuccessfulResize"
	// EventResizeFailed reports that a claim cannot grow, or that the server refused that.
	EventResizeFailed = "FailedResize"
	// EventClaimDiffers reports that a claim differs from its template in fields that cannot be changed.
	EventClaimDiffers = "FailedUpdatePVC"
	// EventConflict reports that another controller owns a claim.
	EventConflict = "ConflictingController"
	// EventDeleteCancelled reports that a pod that a hook held back from deletion is needed again.
	EventDeleteCancelled = "PreDeleteCancelled"
	// EventGateMissing reports that a pod lacks the readiness gate by which a hook makes it not ready.
	EventGateMissing = "ReadinessGateMissing"
)

// Reasons of waits for claims.
const (
	// WaitStaleClaim means that a pod waits until the claim of a former pod is gone.
	WaitStaleClaim = "WaitingForStaleClaim"
	// WaitClaimGoing means that a pod waits until a claim is gone that is being deleted.
	WaitClaimGoing = "ClaimTerminating"
	// WaitClaimTemplateRemoved means that a pod of an older revision cannot be created, because it mounts a volume with
	// a removed claim template, and has no claim for it.
	WaitClaimTemplateRemoved = "ClaimTemplateRemoved"
	// WaitClaims means that a pod waits until its claims have their owners.
	WaitClaims = "ClaimOwners"
	// WaitResize means that a pod waits until a claim has grown.
	WaitResize = "VolumeResizing"
	// WaitResizeFailed means that a claim cannot follow its template.
	WaitResizeFailed = "VolumeResizeFailed"
)

// Reasons are all that users read of this package.
var Reasons = []string{
	EventCreated, EventCreateFailed, EventDeleted, EventDeleteFailed, EventUpdated, EventUpdateFailed, EventResized, EventResizeFailed,
	EventClaimDiffers, EventConflict, EventDeleteCancelled, EventGateMissing,
	WaitStaleClaim, WaitClaimGoing, WaitClaimTemplateRemoved, WaitClaims, WaitResize, WaitResizeFailed,
}
