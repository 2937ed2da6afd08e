package action

// Reasons of waits.
const (
	// WaitRefused means that the server has refused the write; it is tried again after a pause.
	WaitRefused = "Refused"
	// WaitBudget means that a disruption budget has refused the write; it is tried again after a pause, or when a pod
	// becomes available.
	WaitBudget = "BlockedByBudget"
	// WaitNodeTooSmall means that the server has refused to resize the pod, because its node has less than that. The pod
	// stays as it is; the write is tried again after a pause.
	WaitNodeTooSmall = "NodeTooSmall"
	// WaitConflict means that the present version of an object has to arrive in the cache first.
	WaitConflict = "Conflict"
)

// Reasons are all that users read of this package.
var Reasons = []string{WaitRefused, WaitBudget, WaitNodeTooSmall, WaitConflict}
