package predownload

// Reasons of events on the workload.
const (
	// EventCreated reports a job.
	EventCreated = "CreatedImagePullJob"
	// EventFailed means that jobs cannot be created or read.
	EventFailed = "FailedCreateImagePullJob"
	// EventUnavailable means, for a user who counts on it, that the cluster does not serve the kind.
	EventUnavailable = "PreDownloadUnavailable"
	// EventGivenUp means that nodes have failed to pull images again and again, and are left alone.
	EventGivenUp = "PreDownloadGivenUp"
)

// Reasons are all that users read of this package.
var Reasons = []string{EventCreated, EventFailed, EventUnavailable, EventGivenUp}
