package v1beta1

// Types of conditions.
const (
	// DaemonSetAvailable is True while every node that should run a pod has an available one.
	DaemonSetAvailable = "Available"
	// DaemonSetProgressing shows how far the rollout is, and what it waits for.
	DaemonSetProgressing = "Progressing"
	// DaemonSetFailedCreatePod is True while the last attempt to create a pod failed.
	DaemonSetFailedCreatePod = "FailedCreatePod"
	// DaemonSetFailedUpdatePod is True while the last attempt to update or delete a pod failed.
	DaemonSetFailedUpdatePod = "FailedUpdatePod"
)

// Reasons of DaemonSetAvailable.
const (
	// ReasonAllPodsAvailable means that every node that should run a pod has an available one.
	ReasonAllPodsAvailable = "AllPodsAvailable"
	// ReasonPodsUnavailable means that some are missing or not available. The message counts them.
	ReasonPodsUnavailable = "PodsUnavailable"
)

// Reasons of DaemonSetProgressing.
const (
	// ReasonComplete means that all pods match the spec and are available.
	ReasonComplete = "Complete"
	// ReasonRollingOut means that pods are created, or move to the update revision.
	ReasonRollingOut = "RollingOut"
	// ReasonPaused means that the rolling update is paused.
	ReasonPaused = "Paused"
	// ReasonOnDelete means that old pods stay until a user deletes them.
	ReasonOnDelete = "OnDelete"
	// ReasonPartitionReached means that all nodes that partition and selector let go are updated.
	ReasonPartitionReached = "PartitionReached"
	// ReasonNoEligibleNodes means that no node matches the node selector, affinity and tolerations of the template.
	ReasonNoEligibleNodes = "NoEligibleNodes"
	// ReasonBlockedByUnavailableNodes means that nodes without an available pod use up what maxUnavailable or
	// maxSurge allows. The message names up to five of them.
	ReasonBlockedByUnavailableNodes = "BlockedByUnavailableNodes"
	// ReasonBlockedByPreDeleteHook means that a preDelete hook holds pods. The message names them.
	ReasonBlockedByPreDeleteHook = "BlockedByPreDeleteHook"
)

// Reasons of several conditions.
const (
	// ReasonRecovered means that what failed before has succeeded.
	ReasonRecovered = "Recovered"
	// ReasonInvalidSpec means that the spec is invalid and must be edited.
	ReasonInvalidSpec = "InvalidSpec"
)

// ConditionTypes are all types of conditions of this package, in addition to the types that kstatus reads.
var ConditionTypes = []string{DaemonSetAvailable, DaemonSetProgressing, DaemonSetFailedCreatePod, DaemonSetFailedUpdatePod}

// Reasons are all reasons of conditions of this package.
var Reasons = []string{
	ReasonAllPodsAvailable, ReasonPodsUnavailable, ReasonComplete, ReasonRollingOut, ReasonPaused, ReasonOnDelete,
	ReasonPartitionReached, ReasonNoEligibleNodes, ReasonBlockedByUnavailableNodes, ReasonBlockedByPreDeleteHook,
	ReasonRecovered, ReasonInvalidSpec,
}
