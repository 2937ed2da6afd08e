package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageListPullJob pulls several images on nodes: it makes an ImagePullJob for each of them.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of images."
// +kubebuilder:printcolumn:name="SUCCEEDED",type="integer",JSONPath=".status.succeeded",description="The number of images that all nodes have."
// +kubebuilder:printcolumn:name="COMPLETED",type="integer",JSONPath=".status.completed",description="The number of images that no node is pulling any more."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the job was created."
type ImageListPullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which images are pulled, where and how.
	// +optional
	Spec ImageListPullJobSpec `json:"spec,omitempty"`
	// status says how far the job is.
	// +optional
	Status ImageListPullJobStatus `json:"status,omitempty,omitzero"`
}

// ImageListPullJobList is a list of ImageListPullJobs.
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ImageListPullJobs.
	Items []ImageListPullJob `json:"items"`
}

// MaxImages is the largest number of images of an ImageListPullJob.
const MaxImages = 255

// ImageListPullJobSpec says which images are pulled, where and how.
type ImageListPullJobSpec struct {
	// images are references of images, each at most once, at most 255.
	Images []string `json:"images"`

	ImagePullJobTemplate `json:",inline"`
}

// ImageListPullJobStatus says how far a job is. The numbers count images.
type ImageListPullJobStatus struct {
	// startTime is when the operator first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the last ImagePullJob completed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// desired is the number of images.
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`
	// active is how many images are being pulled on any node.
	// +optional
	Active int32 `json:"active,omitempty"`
	// completed is how many images no node is pulling any more, well or not.
	// +optional
	Completed int32 `json:"completed,omitempty"`
	// succeeded is how many images all nodes have.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failedImageStatuses are the images that not all nodes could pull, and those that have no ImagePullJob because the server
	// refuses it, sorted by name.
	// +optional
	FailedImageStatuses []*FailedImageStatus `json:"failedImageStatuses,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// FailedImageStatus names an image that not all nodes could pull.
type FailedImageStatus struct {
	// imagePullJob is the name of the ImagePullJob of the image, whose status names the nodes.
	// +optional
	ImagePullJob string `json:"imagePullJob,omitempty"`
	// name is the image.
	// +optional
	Name string `json:"name,omitempty"`
	// message is the reason, or says where to look for it.
	// +optional
	Message string `json:"message,omitempty"`
}
