package v1beta1

// Annotations of a v1alpha1 PodUnavailableBudget, for what v1beta1 has fields for. A v1beta1 object whose field is empty
// gets the meaning of the annotation, too.
const (
	// ProtectOperationsAnnotation has spec.protectOperations, separated by commas.
	ProtectOperationsAnnotation = "kruise.io/pub-protect-operations"
	// ProtectTotalReplicasAnnotation has spec.protectTotalReplicas, in decimal.
	ProtectTotalReplicasAnnotation = "pub.kruise.io/protect-total-replicas"
	// IgnoredPodSelectorAnnotation has spec.ignoredPodSelector, as JSON.
	IgnoredPodSelectorAnnotation = "pub.kruise.io/ignored-pod-selector"
)

// Marks on pods.
const (
	// RelatedAnnotation of a pod names the budget that covers it. The operator keeps it; webhooks are called for pods that
	// have it.
	RelatedAnnotation = "pub.kruise.io/related-pub"
	// LegacyRelatedAnnotation has the same value, for older tools.
	LegacyRelatedAnnotation = "kruise.io/related-pub"
	// NoProtectAnnotation of a pod set to true by a user: budgets count it and never refuse it.
	NoProtectAnnotation = "pub.kruise.io/no-protect"
	// UnavailableLabelPrefix begins labels of which any, with any value, makes its pod count as unavailable.
	UnavailableLabelPrefix = "unavailable-pod.kruise.io/"
)

// NamespaceLabel marks namespaces that have a budget, with value "true". The operator keeps it; webhooks are called in
// namespaces that have it.
const NamespaceLabel = "policy.kruise.io/pod-unavailable-budget"
