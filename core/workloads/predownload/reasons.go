package predownload

// Reasons of events on the workload.
const (
	// EventCreated tells of a job.
	EventCreated = "CreatedImagePullJob"
	// EventFailed tells that jobs cannot be created or read.
	EventFailed = "FailedCreateImagePullJob"
	// EventUnavailable tells who counts on it that the cluster does not serve the kind.
	EventUnavailable = "PreDownloadUnavailable"
	// EventGivenUp tells that nodes have failed to pull images again and again, and are left alone.
	EventGivenUp = "PreDownloadGivenUp"
)

// Reasons are all that users read of this package.
var Reasons = []string{EventCreated, EventFailed, EventUnavailable, EventGivenUp}
