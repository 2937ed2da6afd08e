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

// MessageNoJob begins what says of an image that its ImagePullJob is not there, because the server has refused to make it
// or to delete what is in its way.
const MessageNoJob = "the ImagePullJob could not be created: "

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{MessageNoJob}
	Reasons  = []string{EventCreated, EventDeleted, EventCreateFailed, EventDeleteFailed}
)
