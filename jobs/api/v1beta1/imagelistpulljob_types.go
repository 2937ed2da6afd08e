package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageListPullJob pulls several images on nodes: it creates an ImagePullJob for each of them.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	Spec ImageListPullJobSpec `json:"spec,omitempty"`
	// status has the progress of the job.
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

// ImageListPullJobSpec has the images, the nodes and the policies of the pull.
type ImageListPullJobSpec struct {
	// images are references of images, each at most once, at most 255.
	Images []string `json:"images"`

	ImagePullJobTemplate `json:",inline"`
}

// ImageListPullJobStatus has the progress of a job. The numbers count images.
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
	// completed is how many images all nodes have finished pulling, with success or failure.
	// +optional
	Completed int32 `json:"completed,omitempty"`
	// succeeded is how many images all nodes have.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failedImageStatuses are the images that failed on a node, and images without an ImagePullJob because the API server
	// rejects it, sorted by name.
	// +optional
	FailedImageStatuses []*FailedImageStatus `json:"failedImageStatuses,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// FailedImageStatus is an image that failed on a node.
type FailedImageStatus struct {
	// imagePullJob is the name of the ImagePullJob of the image. Its status lists the failed nodes.
	// +optional
	ImagePullJob string `json:"imagePullJob,omitempty"`
	// name is the image.
	// +optional
	Name string `json:"name,omitempty"`
	// message is the reason, or the name of the object with the reason.
	// +optional
	Message string `json:"message,omitempty"`
}
