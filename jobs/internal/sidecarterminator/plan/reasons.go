package plan

// Reasons of events on pods and of waits.
const (
	// EventTerminating means that the main containers have ended and sidecars are being stopped.
	EventTerminating = "SidecarTerminator"
	// EventFailed means that the server refused a write that stops the sidecars or ends the pod; it is tried again.
	EventFailed = "FailedTerminateSidecar"
	// EventUnavailable means that the sidecars cannot be stopped, because ContainerRecreateRequest is not installed,
	// the operator may not create it, or the agent of the node does not answer.
	EventUnavailable = "SidecarTerminatorUnavailable"
	// EventGivenUp means that sidecars were started again after each of five requests to stop them.
	EventGivenUp = "SidecarTerminatorGivenUp"
	// EventNeverStarted means that a sidecar is waited for that does not start, for instance for want of its image.
	EventNeverStarted = "SidecarNeverStarted"
	// WaitNode means that the node of the pod is not known.
	WaitNode = "NodeNotFound"
	// WaitStart means that a sidecar does not run yet, or not now: it is stopped once it does.
	WaitStart = "SidecarStarting"
)

// Reasons of condition SidecarTerminated: the result of the main containers.
const (
	// ConditionSucceeded means that all main containers have ended with code 0.
	ConditionSucceeded = "MainContainersSucceeded"
	// ConditionFailed means that a main container has ended with another code.
	ConditionFailed = "MainContainersFailed"
)

// Reasons are all of them.
var Reasons = []string{
	EventTerminating, EventFailed, EventUnavailable, EventGivenUp, EventNeverStarted, WaitNode, WaitStart, ConditionSucceeded, ConditionFailed,
}
