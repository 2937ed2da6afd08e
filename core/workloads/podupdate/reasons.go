package podupdate

import "github.com/flotilla-project/flotilla/core/pods/inplace/completion"

// Reasons of waits for pods.
const (
	// WaitNotInPlace means that policy InPlaceOnly and the change of the template contradict each other.
	WaitNotInPlace = "NotInPlace"
	// WaitNodeAgentMissing means that no node agent would restart the pod's containers.
	WaitNodeAgentMissing = completion.ReasonNodeAgentMissing
	// WaitPreNormalHook means that the hook preNormal holds a new pod.
	WaitPreNormalHook = "PreNormalHook"
	// WaitInPlaceUpdateHook means that the hook inPlaceUpdate holds a pod before or after its update.
	WaitInPlaceUpdateHook = "InPlaceUpdateHook"
	// WaitPreDeleteHook means that the hook preDelete holds a pod that is to go.
	WaitPreDeleteHook = "PreDeleteHook"
)

// Reasons of events on the workload.
const (
	// EventInPlace means that an update in place has begun.
	EventInPlace = "SuccessfulUpdatePodInPlace"
	// EventInPlaceFailed means that it could not.
	EventInPlaceFailed = "FailedUpdatePodInPlace"
)

// Reasons are all that users read of this package.
var Reasons = []string{
	WaitNotInPlace, WaitNodeAgentMissing, WaitPreNormalHook, WaitInPlaceUpdateHook, WaitPreDeleteHook,
	EventInPlace, EventInPlaceFailed,
}
