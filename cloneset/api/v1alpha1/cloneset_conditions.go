package v1alpha1

import "github.com/flotilla-project/flotilla/core/api/workload"

// Types of conditions.
const (
	// CloneSetProgressing says how the rollout goes on. It stands only while progressDeadlineSeconds is in force.
	CloneSetProgressing = "Progressing"
	// CloneSetFailedScale is True while the last attempt to add or take away pods failed.
	CloneSetFailedScale = "FailedScale"
	// CloneSetFailedUpdate is True while the last attempt to update pods failed.
	CloneSetFailedUpdate = "FailedUpdate"
)

// Reasons of CloneSetProgressing.
const (
	// ReasonAvailable: all pods are updated and available.
	ReasonAvailable = "CloneSetAvailable"
	// ReasonPaused: the strategy is paused.
	ReasonPaused = "CloneSetPaused"
	// ReasonPartitionAvailable: as many pods are updated and available as partition asks for.
	ReasonPartitionAvailable = "ProgressPartitionAvailable"
	// ReasonDeadlineExceeded: the rollout made no progress within progressDeadlineSeconds.
	ReasonDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonUpdated: the rollout makes progress.
	ReasonUpdated = "CloneSetUpdated"
)

// CloneSetCondition is one aspect of a CloneSet's state.
type CloneSetCondition = workload.Condition
