package v1beta1

// Types of conditions.
const (
	// StatefulSetAvailable is True while all wanted pods exist and are available.
	StatefulSetAvailable = "Available"
	// StatefulSetProgressing tells how far the rollout is, and what it waits for.
	StatefulSetProgressing = "Progressing"
	// StatefulSetFailedCreatePod is True if the last attempt to create a pod or its claims failed, or if pods cannot be
	// created because a claim template was removed.
	StatefulSetFailedCreatePod = "FailedCreatePod"
	// StatefulSetFailedUpdatePod is True if the last attempt to update or repair a pod failed.
	StatefulSetFailedUpdatePod = "FailedUpdatePod"
	// StatefulSetVolumeResizeFailed is True while a claim cannot follow its template. The message names
	// the claim and what is in the way: its storage class, its driver or the API server.
	StatefulSetVolumeResizeFailed = "VolumeResizeFailed"
)

// Reasons of StatefulSetAvailable.
const (
	// ReasonAllPodsAvailable says that all wanted pods exist and are available.
	ReasonAllPodsAvailable = "AllPodsAvailable"
	// ReasonPodsUnavailable says that some are missing or not available. The message counts them.
	ReasonPodsUnavailable = "PodsUnavailable"
)

// Reasons of StatefulSetProgressing.
const (
	// ReasonComplete says that all pods match the spec and are available.
	ReasonComplete = "Complete"
	// ReasonRollingOut says that pods move to the update revision.
	ReasonRollingOut = "RollingOut"
	// ReasonPaused says that the strategy is paused.
	ReasonPaused = "Paused"
	// ReasonPartitionReached says that all pods are updated that partition does not hold back.
	ReasonPartitionReached = "PartitionReached"
	// ReasonBlockedByUnavailablePods says that the update waits for unavailable pods: as many as maxUnavailable allows,
	// or an earlier one in the order. The message names them.
	ReasonBlockedByUnavailablePods = "BlockedByUnavailablePods"
	// ReasonBlockedByHook says that a lifecycle hook holds a pod. The message names both.
	ReasonBlockedByHook = "BlockedByHook"
	// ReasonBlockedByVolume says that a claim holds a pod. The message names both.
	ReasonBlockedByVolume = "BlockedByVolume"
)

// Reasons of several conditions.
const (
	// ReasonRecovered says that what failed before has succeeded.
	ReasonRecovered = "Recovered"
	// ReasonInvalidSpec says that the spec is invalid and must be edited.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotInPlace says that the change of the template needs new pods, which policy InPlaceOnly rules out.
	ReasonNotInPlace = "NotInPlace"
	// ReasonNodeAgentMissing says that an in-place update needs a node agent to restart containers, and there is none.
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
