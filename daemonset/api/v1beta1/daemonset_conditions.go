package v1beta1

// Types of conditions.
const (
	// DaemonSetAvailable is True while every node that should run a pod has an available one.
	DaemonSetAvailable = "Available"
	// DaemonSetProgressing says how the rollout goes on, and for whom it waits.
	DaemonSetProgressing = "Progressing"
	// DaemonSetFailedCreatePod is True while the last attempt to create a pod failed.
	DaemonSetFailedCreatePod = "FailedCreatePod"
	// DaemonSetFailedUpdatePod is True while the last attempt to update or delete a pod failed.
	DaemonSetFailedUpdatePod = "FailedUpdatePod"
)

// Reasons of DaemonSetAvailable.
const (
	// ReasonAllPodsAvailable says that every node that should run a pod has an available one.
	ReasonAllPodsAvailable = "AllPodsAvailable"
	// ReasonPodsUnavailable says that some are missing or not available. The message counts them.
	ReasonPodsUnavailable = "PodsUnavailable"
)

// Reasons of DaemonSetProgressing.
const (
	// ReasonComplete says that all pods are as wanted and available.
	ReasonComplete = "Complete"
	// ReasonRollingOut says that pods are created, or move to the update revision.
	ReasonRollingOut = "RollingOut"
	// ReasonPaused says that the rolling update is paused.
	ReasonPaused = "Paused"
	// ReasonOnDelete says that old pods stay until somebody deletes them.
	ReasonOnDelete = "OnDelete"
	// ReasonPartitionReached says that all nodes that partition and selector let go are updated.
	ReasonPartitionReached = "PartitionReached"
	// ReasonNoEligibleNodes says that no node matches the node selector, affinity and tolerations of the template.
	ReasonNoEligibleNodes = "NoEligibleNodes"
	// ReasonBlockedByUnavailableNodes says that nodes without an available pod use up what maxUnavailable or
	// maxSurge allows. The message names up to five of them.
	ReasonBlockedByUnavailableNodes = "BlockedByUnavailableNodes"
	// ReasonBlockedByPreDeleteHook says that a preDelete hook holds pods. The message names them.
	ReasonBlockedByPreDeleteHook = "BlockedByPreDeleteHook"
)

// Reasons of several conditions.
const (
	// ReasonRecovered says that what failed does no longer.
	ReasonRecovered = "Recovered"
	// ReasonInvalidSpec says that the spec cannot be followed. Only an edit helps.
	ReasonInvalidSpec = "InvalidSpec"
)

// ConditionTypes are all types of conditions of this package, besides those that kstatus reads.
var ConditionTypes = []string{DaemonSetAvailable, DaemonSetProgressing, DaemonSetFailedCreatePod, DaemonSetFailedUpdatePod}

// Reasons are all reasons of conditions of this package.
var Reasons = []string{
	ReasonAllPodsAvailable, ReasonPodsUnavailable, ReasonComplete, ReasonRollingOut, ReasonPaused, ReasonOnDelete,
	ReasonPartitionReached, ReasonNoEligibleNodes, ReasonBlockedByUnavailableNodes, ReasonBlockedByPreDeleteHook,
	ReasonRecovered, ReasonInvalidSpec,
}
