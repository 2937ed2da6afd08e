package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// BroadcastJob runs one pod to completion on every node that fits.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=bcj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desired",description="The number of nodes that should run a pod."
// +kubebuilder:printcolumn:name="Active",type="integer",JSONPath=".status.active",description="The number of pods that are running."
// +kubebuilder:printcolumn:name="Succeeded",type="integer",JSONPath=".status.succeeded",description="The number of pods that succeeded."
// +kubebuilder:printcolumn:name="Failed",type="integer",JSONPath=".status.failed",description="The number of pods that failed."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the job was created."
// +kubebuilder:printcolumn:name="Phase",type="string",priority=1,JSONPath=".status.phase",description="The phase of the job."
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.message",description="Why the job waits, or how it ended."
type BroadcastJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the pod template and the policies of the job.
	// +optional
	Spec v1beta1.BroadcastJobSpec `json:"spec,omitempty"`
	// status has the progress of the job.
	// +optional
	Status v1beta1.BroadcastJobStatus `json:"status,omitempty,omitzero"`
}

// BroadcastJobList is a list of BroadcastJobs.
// +kubebuilder:object:root=true
type BroadcastJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the BroadcastJobs.
	Items []BroadcastJob `json:"items"`
}
