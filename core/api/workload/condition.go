package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition is one aspect of a workload's state.
type Condition struct {
	// type of the condition.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastUpdateTime is when status or reason changed last.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`
	// lastTransitionTime is when status changed last.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
	// reason is a word in CamelCase for programs.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the reason to people.
	// +optional
	Message string `json:"message,omitempty"`
}
