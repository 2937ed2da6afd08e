package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// PodUnavailableBudget limits how many pods of an application are out of service at the same time by voluntary
// disruptions: deletion, eviction and changes of running pods.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=pub
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="How many pods may be disrupted now."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="How many pods are available."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="How many pods must stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="How many pods the workloads want."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which pods are protected, and how many of them may be unavailable.
	// +optional
	Spec PodUnavailableBudgetSpec `json:"spec,omitempty"`
	// status says how many pods are available, and which disruptions were granted.
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

// PodUnavailableBudgetSpec says which pods are protected, and how many of them may be unavailable.
// +kubebuilder:validation:XValidation:rule="has(self.selector) || has(self.targetRef)",message="one of selector and targetRef is required",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.targetRef)",message="selector and targetRef are mutually exclusive",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.maxUnavailable) || has(self.minAvailable)",message="one of maxUnavailable and minAvailable is required",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !has(self.minAvailable)",message="maxUnavailable and minAvailable are mutually exclusive",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector)",message="is immutable: create another budget",fieldPath=".selector",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="has(self.targetRef) == has(oldSelf.targetRef)",message="is immutable: create another budget",fieldPath=".targetRef",reason=FieldValueForbidden
type PodUnavailableBudgetSpec struct {
	// selector selects the protected pods of the namespace by their labels. It excludes targetRef, and never changes.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector would match no pod"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="each operator must be In or NotIn with values, or Exists or DoesNotExist without"
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) ? self.matchLabels : {}) == (has(oldSelf.matchLabels) ? oldSelf.matchLabels : {}) && (has(self.matchExpressions) ? self.matchExpressions : []) == (has(oldSelf.matchExpressions) ? oldSelf.matchExpressions : [])",message="is immutable: create another budget",reason=FieldValueForbidden
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// targetRef names the workload in the namespace whose pods are protected. It excludes selector, and never changes.
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
	// ignoredPodSelector selects pods that are never refused. They still count while they are available.
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="an empty selector would ignore no pod"
	// +optional
	IgnoredPodSelector *metav1.LabelSelector `json:"ignoredPodSelector,omitempty"`
}

// TargetReference names a workload in the namespace of the budget.
// +kubebuilder:validation:XValidation:rule="has(self.apiVersion) && size(self.apiVersion) > 0 && has(self.kind) && size(self.kind) > 0 && has(self.name) && size(self.name) > 0",message="apiVersion, kind and name are required",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.kind) || self.kind != 'Pod' || !has(self.apiVersion) || self.apiVersion != 'v1'",message="a pod is no workload: use selector",fieldPath=".kind"
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
	// UpdateOperation changes a running pod so that containers restart, or takes it out of service for that.
	UpdateOperation PubOperation = "UPDATE"
	// EvictOperation evicts a pod.
	EvictOperation PubOperation = "EVICT"
	// ResizeOperation changes the resources of containers that keep running.
	ResizeOperation PubOperation = "RESIZE"
)

// PodUnavailableBudgetStatus says how many pods are available, and which disruptions were granted.
type PodUnavailableBudgetStatus struct {
	// observedGeneration is the generation of the spec that the numbers follow from. While it is not the present one,
	// nothing is granted.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// disruptedPods are pods whose deletion or eviction was granted and has not been seen yet, with the time of the grant.
	// +optional
	DisruptedPods map[string]metav1.Time `json:"disruptedPods,omitempty"`
	// unavailablePods are pods whose change was granted and has not been seen to end yet, with the time of the grant.
	// +optional
	UnavailablePods map[string]metav1.Time `json:"unavailablePods,omitempty"`
	// podUIDs are the UIDs of the pods in disruptedPods and unavailablePods: a new pod of the same name is another one.
	// +optional
	PodUIDs map[string]types.UID `json:"podUIDs,omitempty"`
	// grants say that the disruptions of pods in disruptedPods and unavailablePods have passed the budget. An entry without
	// one is of another manager: it is counted, and lets its pod go only while enough pods are available.
	// +optional
	Grants map[string]PodGrant `json:"grants,omitempty"`
	// unavailableAllowed is how many more disruptions can be granted now, at most what the budget allows at all.
	UnavailableAllowed int32 `json:"unavailableAllowed"`
	// currentAvailable is how many pods are available and were granted no disruption. A disruption is granted while it is
	// larger than desiredAvailable.
	CurrentAvailable int32 `json:"currentAvailable"`
	// desiredAvailable is how many pods must stay available.
	DesiredAvailable int32 `json:"desiredAvailable"`
	// totalReplicas is how many pods the workloads want.
	TotalReplicas int32 `json:"totalReplicas"`
	// conditions say why nothing is granted, and what is not as it should be.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PodGrant says more of an entry in disruptedPods or unavailablePods.
type PodGrant struct {
	// resourceVersion of the pod for which a change was granted last. A pod with a newer one has been changed, or the change is
	// asked for again before it is carried out. Empty if no change was granted.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// closed is true if the disruption was asked for again and again and has not been seen: the entry lets its pod go no more,
	// and ends when the last request can have no effect any more.
	// +optional
	Closed bool `json:"closed,omitempty"`
}
