package disruption

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
	// ReasonInsufficientPods means that no more pods are available than must be.
	ReasonInsufficientPods = "InsufficientPods"
	// ReasonSufficientPods means that more pods are available than must be, or that none must be.
	ReasonSufficientPods = "SufficientPods"
	// ReasonInvalidSpec means that the limit cannot be evaluated, so that nothing is granted.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNoScale means that the kind of a workload has no scale subresource: spec.protectTotalReplicas helps.
	ReasonNoScale = "NoScale"
	// ReasonForbidden means that the operator may not read a workload: a role that lets it get, list and watch it helps.
	ReasonForbidden = "Forbidden"
	// ReasonNotServed means that the cluster does not serve the kind of a workload.
	ReasonNotServed = "NotServed"
	// ReasonUnreadable means that the API server fails to read a workload, or its scale.
	ReasonUnreadable = "Unreadable"
	// ReasonPodsCoveredTwice means that two budgets cover a pod.
	ReasonPodsCoveredTwice = "PodsCoveredTwice"
)

// Reasons of events.
const (
	// EventNoPods reports that the budget covers no pod.
	EventNoPods = "NoPods"
	// EventLimitFailed reports that maxUnavailable or minAvailable cannot be evaluated.
	EventLimitFailed = "CalculateExpectedPodCountFailed"
	// EventNotDeleted reports, on a pod, that its deletion was granted and has not happened.
	EventNotDeleted = "NotDeleted"
	// EventPrevented reports, on a pod, that a budget has refused to disrupt it.
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
