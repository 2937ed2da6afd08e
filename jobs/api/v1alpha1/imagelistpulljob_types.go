package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// ImageListPullJob pulls several images on nodes: it creates an ImagePullJob for each of them.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of images."
// +kubebuilder:printcolumn:name="SUCCEEDED",type="integer",JSONPath=".status.succeeded",description="The number of images that all nodes have."
// +kubebuilder:printcolumn:name="COMPLETED",type="integer",JSONPath=".status.completed",description="The number of images that all nodes have finished pulling."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the job was created."
type ImageListPullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the images, the nodes and the policies of the pull.
	// +optional
	Spec v1beta1.ImageListPullJobSpec `json:"spec,omitempty"`
	// status has the progress of the job.
	// +optional
	Status v1beta1.ImageListPullJobStatus `json:"status,omitempty,omitzero"`
}

// ImageListPullJobList is a list of ImageListPullJobs.
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ImageListPullJobs.
	Items []ImageListPullJob `json:"items"`
}
