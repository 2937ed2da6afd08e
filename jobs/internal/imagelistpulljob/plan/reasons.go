package plan

// Reasons of events.
const (
	// EventCreated says that the ImagePullJob of an image was made.
	EventCreated = "SuccessfulCreate"
	// EventDeleted says that an ImagePullJob was deleted that the job does not want any more.
	EventDeleted = "SuccessfulDelete"
	// EventCreateFailed says that the ImagePullJob of an image could not be made.
	EventCreateFailed = "FailedCreate"
	// EventDeleteFailed says that an ImagePullJob could not be deleted.
	EventDeleteFailed = "FailedDelete"
)

// Reasons are all that users read of this package.
var Reasons = []string{EventCreated, EventDeleted, EventCreateFailed, EventDeleteFailed}
