package v1beta1

// Types of conditions.
const (
	// StatefulSetAvailable is True while all wanted pods exist and are available.
	StatefulSetAvailable = "Available"
	// StatefulSetProgressing says how the rollout goes on, and for whom it waits.
	StatefulSetProgressing = "Progressing"
	// StatefulSetFailedCreatePod is True while the last attempt to create a pod or its claims failed.
	StatefulSetFailedCreatePod = "FailedCreatePod"
	// StatefulSetFailedUpdatePod is True while the last attempt to update or repair a pod failed.
	StatefulSetFailedUpdatePod = "FailedUpdatePod"
	// StatefulSetVolumeResizeFailed is True while a claim cannot follow its template. The message names
	// the claim and its storage class.
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
	// ReasonComplete says that all pods are as wanted and available.
	ReasonComplete = "Complete"
	// ReasonRollingOut says that pods move to the update revision.
	ReasonRollingOut = "RollingOut"
	// ReasonPaused says that the strategy is paused.
	ReasonPaused = "Paused"
	// ReasonPartitionReached says that all pods that partition lets go are updated.
	ReasonPartitionReached = "PartitionReached"
	// ReasonBlockedByUnavailablePods says that unavailable pods use up what maxUnavailable allows, or
	// hold the order. The message names them.
	ReasonBlockedByUnavailablePods = "BlockedByUnavailablePods"
	// ReasonBlockedByHook says that a lifecycle hook holds a pod. The message names both.
	ReasonBlockedByHook = "BlockedByHook"
	// ReasonBlockedByVolume says that a claim holds a pod. The message names both.
	ReasonBlockedByVolume = "BlockedByVolume"
)

// Reasons of several conditions.
const (
	// ReasonRecovered says that what failed does no longer.
	ReasonRecovered = "Recovered"
	// ReasonInvalidSpec says that the spec cannot be followed. Only an edit helps.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotInPlace says that policy InPlaceOnly and the change of the template contradict each other.
	ReasonNotInPlace = "NotInPlace"
	// ReasonNodeAgentMissing says that no node agent would restart containers for an update in place.
	ReasonNodeAgentMissing = "NodeAgentMissing"
)

// ConditionTypes are all types of conditions of this package, besides those that kstatus reads.
var ConditionTypes = []string{
	StatefulSetAvailable, StatefulSetProgressing, StatefulSetFailedCreatePod, StatefulSetFailedUpdatePod, StatefulSetVolumeResizeFailed,
}

// Reasons are all reasons of conditions of this package.
var Reasons = []string{
	ReasonAllPodsAvailable, ReasonPodsUnavailable, ReasonComplete, ReasonRollingOut, ReasonPaused, ReasonPartitionReached,
	ReasonBlockedByUnavailablePods, ReasonBlockedByHook, ReasonBlockedByVolume,
	ReasonRecovered, ReasonInvalidSpec, ReasonNotInPlace, ReasonNodeAgentMissing,
}
