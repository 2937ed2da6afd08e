package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// PodUnavailableBudget limits how many pods of an application are out of service at the same time by voluntary
// disruptions: deletion, eviction and changes of running pods.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=pub
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Allowed",type="integer",JSONPath=".status.unavailableAllowed",description="How many pods may be disrupted now."
// +kubebuilder:printcolumn:name="Current",type="integer",JSONPath=".status.currentAvailable",description="How many pods are available."
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desiredAvailable",description="How many pods must stay available."
// +kubebuilder:printcolumn:name="Total",type="integer",JSONPath=".status.totalReplicas",description="How many pods the workloads want."
type PodUnavailableBudget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which pods are protected, and how many of them may be unavailable. Protected operations, the total number
	// of replicas and pods to ignore are annotations in this version.
	// +optional
	Spec PodUnavailableBudgetSpec `json:"spec,omitempty"`
	// status says how many pods are available, and which disruptions were granted.
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

// PodUnavailableBudgetSpec says which pods are protected, and how many of them may be unavailable.
type PodUnavailableBudgetSpec struct {
	// selector selects the protected pods of the namespace by their labels. It excludes targetRef, and never changes.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// targetRef names the workload in the namespace whose pods are protected. It excludes selector, and never changes.
	// +optional
	TargetReference *v1beta1.TargetReference `json:"targetRef,omitempty"`
	// maxUnavailable is how many pods may be unavailable: a number, or a percentage of the replicas, rounded up. It
	// excludes minAvailable.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// minAvailable is how many pods must stay available: a number, or a percentage of the replicas, rounded up. It
	// excludes maxUnavailable.
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}
