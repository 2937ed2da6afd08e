package containerstop

// Reasons of events on the pod, as the kubelet tells them.
const (
	// EventKilling tells that a container is stopped, and why.
	EventKilling = "Killing"
	// EventHookFailed tells that a preStop hook failed; the stop goes on.
	EventHookFailed = "FailedPreStopHook"
)

// Reasons are all that users read of this package.
var Reasons = []string{EventKilling, EventHookFailed}

// stopAction is the action that events are about.
const stopAction = "StopContainer"
