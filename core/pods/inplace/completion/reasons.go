package completion

// Reasons of Progress.
const (
	// ReasonGracePeriod means that the grace period has not passed.
	ReasonGracePeriod = "GracePeriod"
	// ReasonKubelet means that the kubelet has not observed the spec.
	ReasonKubelet = "KubeletBehind"
	// ReasonContainer means that a container has not been replaced yet.
	ReasonContainer = "ContainerPending"
	// ReasonNotReady means that a container must be ready before the next batch.
	ReasonNotReady = "ContainerNotReady"
	// ReasonBatch means that the next batch was written in this change.
	ReasonBatch = "NextBatch"
	// ReasonNodeAgentMissing means that the node agent does not know a present container, or does not restart it.
	ReasonNodeAgentMissing = "NodeAgentMissing"
	// ReasonResize means that a resize is under way; Deferred, Infeasible or Error follows when the kubelet reports it.
	ReasonResize = "Resize"
	// ReasonSuperseded means that an update in grace was dropped for another revision.
	ReasonSuperseded = "Superseded"
	// ReasonUnreadable means that the pod's record cannot be read: begin the update to the pod's revision again.
	ReasonUnreadable = "AnnotationNotValid"
)

// ReasonStartUpdate is the reason of condition InPlaceUpdateReady of a pod that is out of service for its update.
const ReasonStartUpdate = "StartInPlaceUpdate"

// Reasons are all that users read of this package.
var Reasons = []string{
	ReasonGracePeriod, ReasonKubelet, ReasonContainer, ReasonNotReady, ReasonBatch, ReasonNodeAgentMissing, ReasonResize,
	ReasonSuperseded, ReasonUnreadable, ReasonStartUpdate,
}
