package conditions

import "github.com/flotilla-project/flotilla/core/plan/action"

// Types of the conditions that kstatus reads.
const (
	// Ready is True while everything is as the spec wants it.
	Ready = "Ready"
	// Reconciling is True while the workload is on its way there, and else absent.
	Reconciling = "Reconciling"
	// Stalled is True while the workload needs help to get there, and else absent.
	Stalled = "Stalled"
)

// Types are all condition types of this package.
var Types = []string{Ready, Reconciling, Stalled}

// Reasons of Ready while it is True.
const (
	// ReasonAvailable means that all pods are up to date and available.
	ReasonAvailable = "Available"
	// ReasonPaused means that all pods are available and that some wait for the end of a pause.
	ReasonPaused = "Paused"
)

// Reasons of Ready while it is False.
const (
	// ReasonFailedScale means that the last attempt to add or take away pods failed.
	ReasonFailedScale = "FailedScale"
	// ReasonFailedUpdate means that the last attempt to update pods failed.
	ReasonFailedUpdate = "FailedUpdate"
	// ReasonBlockedByBudget means that a disruption budget refuses to have another pod taken out of service.
	ReasonBlockedByBudget = action.WaitBudget
	// ReasonNodeTooSmall means that the server has refused to resize a pod, because its node has less than that.
	ReasonNodeTooSmall = action.WaitNodeTooSmall
	// ReasonBlocked means that the server has refused another write.
	ReasonBlocked = "Blocked"
)

// ReasonError is the reason of a condition that has the text of an error as its message.
const ReasonError = "Error"

// Reasons are all that users read of this package.
var Reasons = []string{ReasonAvailable, ReasonPaused, ReasonFailedScale, ReasonFailedUpdate, ReasonBlockedByBudget, ReasonNodeTooSmall, ReasonBlocked, ReasonError}
