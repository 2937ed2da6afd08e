package v1beta1

// Types of conditions.
const (
	// StatefulSetAvailable is True while all wanted pods exist and are available.
	StatefulSetAvailable = "Available"
	// StatefulSetProgressing shows how far the rollout is, and what it waits for.
	StatefulSetProgressing = "Progressing"
	// StatefulSetFailedCreatePod is True if the last attempt to create a pod or its claims failed, or if pods cannot be
	// created because a claim template was removed.
	StatefulSetFailedCreatePod = "FailedCreatePod"
	// StatefulSetFailedUpdatePod is True if the last attempt to update or repair a pod failed.
	StatefulSetFailedUpdatePod = "FailedUpdatePod"
	// StatefulSetVolumeResizeFailed is True while a PVC cannot follow its template. The message names the
	// PVC and the cause: its StorageClass, its driver or the API server.
	StatefulSetVolumeResizeFailed = "VolumeResizeFailed"
)

// Reasons of StatefulSetAvailable.
const (
	// ReasonAllPodsAvailable means that all wanted pods exist and are available.
	ReasonAllPodsAvailable = "AllPodsAvailable"
	// ReasonPodsUnavailable means that some are missing or not available. The message counts them.
	ReasonPodsUnavailable = "PodsUnavailable"
)

// Reasons of StatefulSetProgressing.
const (
	// ReasonComplete means that all pods match the spec and are available.
	ReasonComplete = "Complete"
	// ReasonRollingOut means that pods move to the update revision.
	ReasonRollingOut = "RollingOut"
	// ReasonPaused means that the strategy is paused.
	ReasonPaused = "Paused"
	// ReasonPartitionReached means that all pods are updated that partition does not hold back.
	ReasonPartitionReached = "PartitionReached"
	// ReasonBlockedByUnavailablePods means that the update waits for unavailable pods: as many as maxUnavailable allows,
	// or an earlier one in the order. The message names them.
	ReasonBlockedByUnavailablePods = "BlockedByUnavailablePods"
	// ReasonBlockedByHook means that a lifecycle hook holds a pod. The message names both.
	ReasonBlockedByHook = "BlockedByHook"
	// ReasonBlockedByVolume means that a claim holds a pod. The message names both.
	ReasonBlockedByVolume = "BlockedByVolume"
)

// Reasons of several conditions.
const (
	// ReasonRecovered means that what failed before has succeeded.
	ReasonRecovered = "Recovered"
	// ReasonInvalidSpec means that the spec is invalid and must be edited.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotInPlace means that the change of the template needs new pods, which policy InPlaceOnly rules out.
	ReasonNotInPlace = "NotInPlace"
	// ReasonNodeAgentMissing means that an in-place update needs a node agent to restart containers, and there is none.
	ReasonNodeAgentMissing = "NodeAgentMissing"
)

// ConditionTypes are the types of the conditions in this package, without those that kstatus reads.
var ConditionTypes = []string{
	StatefulSetAvailable, StatefulSetProgressing, StatefulSetFailedCreatePod, StatefulSetFailedUpdatePod, StatefulSetVolumeResizeFailed,
}

// Reasons are the reasons of the conditions in this package.
var Reasons = []string{
	ReasonAllPodsAvailable, ReasonPodsUnavailable, ReasonComplete, ReasonRollingOut, ReasonPaused, ReasonPartitionReached,
	ReasonBlockedByUnavailablePods, ReasonBlockedByHook, ReasonBlockedByVolume,
	ReasonRecovered, ReasonInvalidSpec, ReasonNotInPlace, ReasonNodeAgentMissing,
}
