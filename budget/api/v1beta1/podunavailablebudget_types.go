package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodUnavailableBudget limits how many pods of an application are unavailable at the same time because of voluntary
// disruptions: deletion, eviction and changes of running pods.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=pub
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="How many pods may be disrupted now."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="How many pods are available."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="How many pods must stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="The number of replicas of the workloads."
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Exhausted\")].reason",description="The reason of condition Exhausted."
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Exhausted\")].message",description="The message of condition Exhausted."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the protected pods, and limits how many of them may be unavailable.
	// +optional
	Spec PodUnavailableBudgetSpec `json:"spec,omitempty"`
	// status has the number of available pods and the allowed disruptions.
	// +optional
	Status PodUnavailableBudgetStatus `json:"status,omitempty,omitzero"`
}

// PodUnavailableBudgetList is a list of PodUnavailableBudgets.
// +kubebuilder:object:root=true
type PodUnavailableBudgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the PodUnavailableBudgets.
	Items []PodUnavailableBudget `json:"items"`
}

// PodUnavailableBudgetSpec selects the protected pods, and limits how many of them may be unavailable.
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.targetRef)",message="one of selector and targetRef is required",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.targetRef)",message="selector and targetRef are mutually exclusive",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) || has(self.minAvailable)",message="one of maxUnavailable and minAvailable is required",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !has(self.minAvailable)",message="maxUnavailable and minAvailable are mutually exclusive",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector)",message="is immutable: create another budget",fieldPath=".selector",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.targetRef) == has(oldSelf.targetRef)",message="is immutable: create another budget",fieldPath=".targetRef",reason=FieldValueForbidden
type PodUnavailableBudgetSpec struct {
	// selector selects the protected pods of the namespace by their labels. It excludes targetRef and is immutable.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="must not be empty: an empty selector selects no pod"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="each operator must be In or NotIn with values, or Exists or DoesNotExist without"
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) ? self.matchLabels : {}) == (has(oldSelf.matchLabels) ? oldSelf.matchLabels : {}) && (has(self.matchExpressions) ? self.matchExpressions : []) == (has(oldSelf.matchExpressions) ? oldSelf.matchExpressions : [])",message="is immutable: create another budget",reason=FieldValueForbidden
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// targetRef names a workload in the namespace. Its pods are protected. It excludes selector and is immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: create another budget",reason=FieldValueForbidden
	// +optional
	TargetReference *TargetReference `json:"targetRef,omitempty"`
	// maxUnavailable is how many pods may be unavailable: a number, or a percentage of the replicas, rounded up. It
	// excludes minAvailable.
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^[0-9]+%$')",message="must be a whole number or a percentage such as 30%"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || !self.matches('^[0-9]+%$') || self.matches('^0*(100|[0-9]{1,2})%$')",message="must not be greater than 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// minAvailable is how many pods must stay available: a number, or a percentage of the replicas, rounded up. It
	// excludes maxUnavailable.
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^[0-9]+%$')",message="must be a whole number or a percentage such as 30%"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || !self.matches('^[0-9]+%$') || self.matches('^0*(100|[0-9]{1,2})%$')",message="must not be greater than 100%"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// protectOperations are the operations that may be refused. The default is DELETE, UPDATE and EVICT.
	// +optional
	ProtectOperations []PubOperation `json:"protectOperations,omitempty"`
	// protectTotalReplicas replaces the replicas of the workloads as the base of percentages and of maxUnavailable.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ProtectTotalReplicas *int32 `json:"protectTotalReplicas,omitempty"`
	// ignoredPodSelector selects pods that can always be disrupted. They still count while they are available.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="must not be empty: an empty ignoredPodSelector selects no pod"
	// +optional
	IgnoredPodSelector *metav1.LabelSelector `json:"ignoredPodSelector,omitempty"`
}

// TargetReference names a workload in the namespace of the budget.
// +kubebuilder:validation:XValidation:rule="has(self.apiVersion) && size(self.apiVersion) > 0 && has(self.kind) && size(self.kind) > 0 && has(self.name) && size(self.name) > 0",message="apiVersion, kind and name are required",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.kind) || self.kind != 'Pod' || !has(self.apiVersion) || self.apiVersion != 'v1'",message="must be a workload: use selector to protect single pods",fieldPath=".kind"
type TargetReference struct {
	// apiVersion of the workload. Only its group counts.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind of the workload.
	// +optional
	Kind string `json:"kind,omitempty"`
	// name of the workload.
	// +optional
	Name string `json:"name,omitempty"`
}

// PubOperation is a kind of disruption.
// +kubebuilder:validation:Enum=DELETE;UPDATE;EVICT;RESIZE
type PubOperation string

const (
	// DeleteOperation deletes a pod.
	DeleteOperation PubOperation = "DELETE"
	// UpdateOperation changes a running pod so that containers restart, or sets it to not ready for that.
	UpdateOperation PubOperation = "UPDATE"
	// EvictOperation evicts a pod.
	EvictOperation PubOperation = "EVICT"
	// ResizeOperation changes the resources of containers that keep running.
	ResizeOperation PubOperation = "RESIZE"
)

// PodUnavailableBudgetStatus has the number of available pods and the allowed disruptions.
type PodUnavailableBudgetStatus struct {
	// observedGeneration is the generation of the spec that the numbers are computed from. Until it equals
	// metadata.generation, disruptions are refused.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// disruptedPods are pods with an allowed deletion or eviction that the operator has yet to see, with the time of the grant.
	// +optional
	DisruptedPods map[string]metav1.Time `json:"disruptedPods,omitempty"`
	// unavailablePods are pods with an allowed change that has yet to end, with the time of the grant.
	// +optional
	UnavailablePods map[string]metav1.Time `json:"unavailablePods,omitempty"`
	// podUIDs are the UIDs of the pods in disruptedPods and unavailablePods: a new pod of the same name is another one.
	// +optional
	PodUIDs map[string]types.UID `json:"podUIDs,omitempty"`
	// grants are the disruptions of pods in disruptedPods and unavailablePods that this budget has allowed. An entry without
	// a grant was written by another manager: it is counted, and its pod can be disrupted only while enough pods are available.
	// +optional
	Grants map[string]PodGrant `json:"grants,omitempty"`
	// unavailableAllowed is how many more disruptions are allowed now.
	UnavailableAllowed int32 `json:"unavailableAllowed"`
	// currentAvailable is how many pods are available, without pods that have a grant. A disruption is allowed while it is
	// larger than desiredAvailable.
	CurrentAvailable int32 `json:"currentAvailable"`
	// desiredAvailable is how many pods must stay available.
	DesiredAvailable int32 `json:"desiredAvailable"`
	// totalReplicas is the number of replicas of the workloads.
	TotalReplicas int32 `json:"totalReplicas"`
	// conditions report why disruptions are refused, and problems of the budget.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodGrant has details of an entry in disruptedPods or unavailablePods.
type PodGrant struct {
	// resourceVersion of the pod for which a change was granted last. A newer one means that the pod has been changed, or that
	// the change was requested again before it happened. Empty if the grant is for a deletion.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// closed is true if the disruption was requested repeatedly but did not happen: further requests are refused, and the entry
	// ends when the last request has expired.
	// +optional
	Closed bool `json:"closed,omitempty"`
}
