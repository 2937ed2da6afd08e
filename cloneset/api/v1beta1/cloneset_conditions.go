package v1beta1

// Types of conditions.
const (
	// CloneSetProgressing says how the rollout goes on. It stands only while progressDeadlineSeconds is in force.
	CloneSetProgressing = "Progressing"
	// CloneSetFailedScale is True while the last attempt to add or take away pods failed.
	CloneSetFailedScale = "FailedScale"
	// CloneSetFailedUpdate is True while the last attempt to update pods failed.
	CloneSetFailedUpdate = "FailedUpdate"
	// CloneSetScaleUpLimited is True while pods are missing that scaleStrategy.maxUnavailable does not let start.
	CloneSetScaleUpLimited = "ScaleUpLimited"
)

// Reasons of CloneSetProgressing.
const (
	// ReasonAvailable says that all pods are updated and available.
	ReasonAvailable = "CloneSetAvailable"
	// ReasonPaused says that the strategy is paused.
	ReasonPaused = "CloneSetPaused"
	// ReasonPartitionAvailable says that as many pods are updated and available as partition asks for.
	ReasonPartitionAvailable = "ProgressPartitionAvailable"
	// ReasonDeadlineExceeded says that the rollout made no progress within progressDeadlineSeconds.
	ReasonDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonUpdated says that the rollout makes progress.
	ReasonUpdated = "CloneSetUpdated"
)

// Reasons of Ready, Reconciling and Stalled, which say for tools whether a set is as its spec wants it.
const (
	// ReasonProgressing says that the set is on its way.
	ReasonProgressing = "Progressing"
	// ReasonInvalidSpec says that the spec cannot be followed. Only an edit helps.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotInPlace says that policy InPlaceOnly and the change of the template contradict each other.
	ReasonNotInPlace = "NotInPlace"
	// ReasonNodeAgentMissing says that no node agent would restart containers for an update in place.
	ReasonNodeAgentMissing = "NodeAgentMissing"
)

// ConditionTypes are all types of conditions of this package, besides those that kstatus reads.
var ConditionTypes = []string{CloneSetProgressing, CloneSetFailedScale, CloneSetFailedUpdate, CloneSetScaleUpLimited}

// Reasons are all reasons of conditions of this package.
var Reasons = []string{
	ReasonAvailable, ReasonPaused, ReasonPartitionAvailable, ReasonDeadlineExceeded, ReasonUpdated,
	ReasonProgressing, ReasonInvalidSpec, ReasonNotInPlace, ReasonNodeAgentMissing,
}
