package plan

// Reasons of events on the pod.
const (
	// EventOpened reports that containers of a priority may start.
	EventOpened = "LaunchBarrierOpened"
	// EventOpenFailed reports that the pod's ConfigMap could not be written, or belongs to another object.
	EventOpenFailed = "FailedOpenLaunchBarrier"
	// EventInvalid reports a container that waits for a key that is no priority.
	EventInvalid = "InvalidLaunchBarrier"
)

// Reasons of waits.
const (
	// WaitPriority means that containers wait until containers of a higher priority are ready.
	WaitPriority = "LaunchPriority"
	// WaitTerminating means that the ConfigMap of another pod is being deleted.
	WaitTerminating = "ConfigMapTerminating"
	// WaitOccupied means that the ConfigMap belongs to another object.
	WaitOccupied = "ConfigMapOccupied"
)

// Reasons are all that users read of this package.
var Reasons = []string{EventOpened, EventOpenFailed, EventInvalid, WaitPriority, WaitTerminating, WaitOccupied}
