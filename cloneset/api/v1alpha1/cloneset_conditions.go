package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CloneSetConditionType is a type of condition.
type CloneSetConditionType string

// Types of conditions.
const (
	// CloneSetProgressing says how the rollout goes on. It stands only while progressDeadlineSeconds is in force.
	CloneSetProgressing CloneSetConditionType = "Progressing"
	// CloneSetFailedScale is True while the last attempt to add or take away pods failed.
	CloneSetFailedScale CloneSetConditionType = "FailedScale"
	// CloneSetFailedUpdate is True while the last attempt to update pods failed.
	CloneSetFailedUpdate CloneSetConditionType = "FailedUpdate"
)

// Reasons of CloneSetProgressing.
const (
	// ReasonAvailable: all pods are updated and available.
	ReasonAvailable = "CloneSetAvailable"
	// ReasonPaused: the strategy is paused.
	ReasonPaused = "CloneSetPaused"
	// ReasonPartitionAvailable: as many pods are updated and available as partition asks for.
	ReasonPartitionAvailable = "ProgressPartitionAvailable"
	// ReasonDeadlineExceeded: the rollout made no progress within progressDeadlineSeconds.
	ReasonDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonUpdated: the rollout makes progress.
	ReasonUpdated = "CloneSetUpdated"
)

// CloneSetCondition is something about a CloneSet that was found true, false or unknown.
type CloneSetCondition struct {
	// type of the condition.
	Type CloneSetConditionType `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastUpdateTime is when status or reason last changed.
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty,omitzero"`
	// lastTransitionTime is when status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
	// reason is one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is for people.
	// +optional
	Message string `json:"message,omitempty"`
}
