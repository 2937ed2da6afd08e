package plan

// Types of conditions of a budget.
const (
	// ConditionExhausted is True while nothing is granted; its message names the pods that are not available.
	ConditionExhausted = "Exhausted"
	// ConditionReplicasUnknown is there while it is not known how many replicas a workload wants: its present pods count.
	ConditionReplicasUnknown = "ReplicasUnknown"
	// ConditionConflict is there while another budget covers one of the pods, too: each is charged, and either may refuse.
	ConditionConflict = "Conflict"
)

// Reasons of conditions.
const (
	// ReasonInsufficientPods says that no more pods are available than must be.
	ReasonInsufficientPods = "InsufficientPods"
	// ReasonSufficientPods says that more pods are available than must be, or that none must be.
	ReasonSufficientPods = "SufficientPods"
	// ReasonInvalidSpec says that the limit cannot be evaluated, so that nothing is granted.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNoScale says that the kind of a workload has no scale subresource: spec.protectTotalReplicas helps.
	ReasonNoScale = "NoScale"
	// ReasonForbidden says that the operator may not read a workload: a role that lets it get, list and watch it helps.
	ReasonForbidden = "Forbidden"
	// ReasonNotServed says that the cluster does not serve the kind of a workload.
	ReasonNotServed = "NotServed"
	// ReasonUnreadable says that the API server fails to read a workload, or its scale.
	ReasonUnreadable = "Unreadable"
	// ReasonPodsCoveredTwice says that two budgets cover a pod.
	ReasonPodsCoveredTwice = "PodsCoveredTwice"
)

// Reasons of events.
const (
	// EventNoPods says that the budget covers no pod.
	EventNoPods = "NoPods"
	// EventLimitFailed says that maxUnavailable or minAvailable cannot be evaluated.
	EventLimitFailed = "CalculateExpectedPodCountFailed"
	// EventNotDeleted says, on a pod, that its deletion was granted and has not happened.
	EventNotDeleted = "NotDeleted"
	// EventPrevented says, on a pod, that a budget has refused to disrupt it.
	EventPrevented = "PubPreventPodDeletion"
)

// ConditionTypes and Reasons are all that users read of this package.
var (
	ConditionTypes = []string{ConditionExhausted, ConditionReplicasUnknown, ConditionConflict}
	Reasons        = []string{
		ReasonInsufficientPods, ReasonSufficientPods, ReasonInvalidSpec, ReasonNoScale, ReasonForbidden, ReasonNotServed, ReasonUnreadable,
		ReasonPodsCoveredTwice, EventNoPods, EventLimitFailed, EventNotDeleted, EventPrevented,
	}
)
