package v1beta1

// Types of conditions.
const (
	// CloneSetProgressing shows how far the rollout is. It is present only if progressDeadlineSeconds sets a deadline.
	CloneSetProgressing = "Progressing"
	// CloneSetFailedScale is True if the last attempt to create or delete pods failed, or if pods cannot be created because
	// a claim template was removed.
	CloneSetFailedScale = "FailedScale"
	// CloneSetFailedUpdate is True if the last attempt to update pods failed.
	CloneSetFailedUpdate = "FailedUpdate"
	// CloneSetScaleUpLimited is True while scaleStrategy.maxUnavailable keeps missing pods from being created.
	CloneSetScaleUpLimited = "ScaleUpLimited"
)

// Reasons of CloneSetProgressing.
const (
	// ReasonAvailable means that all pods are updated and available.
	ReasonAvailable = "CloneSetAvailable"
	// ReasonPaused means that the strategy is paused.
	ReasonPaused = "CloneSetPaused"
	// ReasonPartitionAvailable means that as many pods are updated and available as partition asks for.
	ReasonPartitionAvailable = "ProgressPartitionAvailable"
	// ReasonDeadlineExceeded means that the rollout made no progress within progressDeadlineSeconds.
	ReasonDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonUpdated means that the rollout makes progress.
	ReasonUpdated = "CloneSetUpdated"
)

// Reasons of Ready, Reconciling and Stalled, by which tools see whether a set matches its spec.
const (
	// ReasonProgressing means that the set does not match its spec yet.
	ReasonProgressing = "Progressing"
	// ReasonInvalidSpec means that the spec is invalid and must be edited.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotInPlace means that the change of the template needs new pods, which policy InPlaceOnly rules out.
	ReasonNotInPlace = "NotInPlace"
	// ReasonNodeAgentMissing means that an in-place update needs a node agent to restart containers, and there is none.
	ReasonNodeAgentMissing = "NodeAgentMissing"
)

// ConditionTypes are the types of the conditions in this package, without those that kstatus reads.
var ConditionTypes = []string{CloneSetProgressing, CloneSetFailedScale, CloneSetFailedUpdate, CloneSetScaleUpLimited}

// Reasons are the reasons of the conditions in this package.
var Reasons = []string{
	ReasonAvailable, ReasonPaused, ReasonPartitionAvailable, ReasonDeadlineExceeded, ReasonUpdated,
	ReasonProgressing, ReasonInvalidSpec, ReasonNotInPlace, ReasonNodeAgentMissing,
}
