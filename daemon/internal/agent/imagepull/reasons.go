package imagepull

// Reasons of events on the NodeImage.
const (
	// EventSucceeded reports that an image was pulled.
	EventSucceeded = "PullImageSucceed"
	// EventFailed reports that an image could not be pulled. The owners of the tag get the event, too.
	EventFailed = "PullImageFailed"
)

// Reasons are the reasons of all events of this package.
var Reasons = []string{EventSucceeded, EventFailed}

// pullAction is the action that events are about.
const pullAction = "PullImage"
