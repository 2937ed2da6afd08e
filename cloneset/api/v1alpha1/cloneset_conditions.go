package v1alpha1

// Types of conditions.
const (
	// CloneSetProgressing shows how far the rollout is. It is present only if progressDeadlineSeconds sets a deadline.
	CloneSetProgressing = "Progressing"
	// CloneSetFailedScale is True if the last attempt to create or delete pods failed.
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
	// ReasonInvalidSpec means that the spec is invalid and must be edited.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotInPlace means that the change of the template needs new pods, which policy InPlaceOnly rules out.
	ReasonNotInPlace = "NotInPlace"
	// ReasonNodeAgentMissing means that an in-place update needs a node agent to restart containers, and there is none.
	ReasonNodeAgentMissing = "NodeAgentMissing"
)
