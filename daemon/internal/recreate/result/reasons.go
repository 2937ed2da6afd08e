package result

// Reasons of the conditions.
const (
	// ReasonContainersRecreated is the reason of condition Complete.
	ReasonContainersRecreated = "ContainersRecreated"
	// ReasonContainersNotRecreated is the reason of condition Failed if the request has ended with a container that failed.
	ReasonContainersNotRecreated = "ContainersNotRecreated"
	// ReasonDeadlineExceeded is the reason of condition Failed after activeDeadlineSeconds.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonPodGone is the reason of condition Failed if the pod is gone or another one has its name.
	ReasonPodGone = "PodGone"
	// ReasonPodTerminated is the reason of condition Failed if the pod is in a final phase.
	ReasonPodTerminated = "PodTerminated"
	// ReasonAgentSilent is the reason of condition Failed if the node agent does not write.
	ReasonAgentSilent = "AgentSilent"
)

// Reasons are all reasons of the conditions.
var Reasons = []string{ReasonContainersRecreated, ReasonContainersNotRecreated, ReasonDeadlineExceeded, ReasonPodGone, ReasonPodTerminated, ReasonAgentSilent}
