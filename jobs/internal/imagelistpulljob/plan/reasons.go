package plan

// Reasons of events.
const (
	// EventCreated means that the ImagePullJob of an image was made.
	EventCreated = "SuccessfulCreate"
	// EventDeleted means that an ImagePullJob was deleted that the job does not want any more.
	EventDeleted = "SuccessfulDelete"
	// EventCreateFailed means that the ImagePullJob of an image could not be made.
	EventCreateFailed = "FailedCreate"
	// EventDeleteFailed means that an ImagePullJob could not be deleted.
	EventDeleteFailed = "FailedDelete"
)

// MessageNoJob begins the message of an image without its ImagePullJob, because the server has refused to make it or to
// delete the object that is in its way.
const MessageNoJob = "the ImagePullJob could not be created: "

// Messages and Reasons are all that users read of this package.
var (
	Messages = []string{MessageNoJob}
	Reasons  = []string{EventCreated, EventDeleted, EventCreateFailed, EventDeleteFailed}
)
