package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// PodUnavailableBudget limits how many pods of an application are unavailable at the same time because of voluntary
// disruptions: deletion, eviction and changes of running pods.
// +kubebuilder:object:root=true
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

	// spec selects the protected pods, and limits how many of them may be unavailable. Protected operations, the total number
	// of replicas and pods to ignore are annotations in this version.
	// +optional
	Spec PodUnavailableBudgetSpec `json:"spec,omitempty"`
	// status has the number of available pods and the allowed disruptions.
	// +optional
	Status v1beta1.PodUnavailableBudgetStatus `json:"status,omitempty,omitzero"`
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
	TargetReference *v1beta1.TargetReference `json:"targetRef,omitempty"`
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
}
