package plan

// Reasons of events on the pod.
const (
	// EventOpened tells that containers of a priority may start.
	EventOpened = "LaunchBarrierOpened"
	// EventOpenFailed tells that the pod's ConfigMap could not be written, or belongs to somebody else.
	EventOpenFailed = "FailedOpenLaunchBarrier"
	// EventInvalid tells of a container that waits for a key that is no priority.
	EventInvalid = "InvalidLaunchBarrier"
)

// Reasons of waits.
const (
	// WaitPriority says that containers wait until those of a higher priority are ready.
	WaitPriority = "LaunchPriority"
	// WaitTerminating says that the ConfigMap of another pod is being deleted.
	WaitTerminating = "ConfigMapTerminating"
	// WaitOccupied says that the ConfigMap belongs to somebody else.
	WaitOccupied = "ConfigMapOccupied"
)

// Reasons are all that users read of this package.
var Reasons = []string{EventOpened, EventOpenFailed, EventInvalid, WaitPriority, WaitTerminating, WaitOccupied}
