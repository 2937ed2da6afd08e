package containerstop

// Reasons of events on the pod, as the kubelet uses them.
const (
	// EventKilling reports that a container is stopped, and why.
	EventKilling = "Killing"
	// EventHookFailed reports that a preStop hook failed; the stop continues.
	EventHookFailed = "FailedPreStopHook"
)

// Reasons are all that users read of this package.
var Reasons = []string{EventKilling, EventHookFailed}

// stopAction is the action that events are about.
const stopAction = "StopContainer"
