package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeImage has the images that a node pulls, and their progress. It has the name and the labels of its node.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desired",description="The number of tags that the node should have."
// +kubebuilder:printcolumn:name="PULLING",type="integer",JSONPath=".status.pulling",description="The number of tags that are being pulled."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of tags that the node has."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of tags with a failed pull."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the NodeImage was created."
type NodeImage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the images that the node should have.
	// +optional
	Spec NodeImageSpec `json:"spec,omitempty"`
	// status has the progress of the node.
	// +optional
	Status NodeImageStatus `json:"status,omitempty,omitzero"`
}

// NodeImageList is a list of NodeImages.
// +kubebuilder:object:root=true
type NodeImageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the NodeImages.
	Items []NodeImage `json:"items"`
}

// NodeImageSpec has the images that the node should have.
type NodeImageSpec struct {
	// images are the images by their name without tag and digest, up to 256. Names have the
	// short form of Docker: nginx, foo/bar, registry.example/a/b.
	// +optional
	Images map[string]ImageSpec `json:"images,omitempty"`
}

// ImageSpec has the tags of an image, and options for their pull.
type ImageSpec struct {
	// pullSecrets are the secrets with the credentials of the registry, in the namespace that node agents
	// may read.
	// +optional
	PullSecrets []SecretReference `json:"pullSecrets,omitempty"`
	// tags are the tags to pull, sorted by tag, each at most once.
	Tags []ImageTagSpec `json:"tags"`
	// sandboxConfig is sent to the container runtime with every pull of the image.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
}

// SecretReference names a secret.
type SecretReference struct {
	// namespace of the secret.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the secret.
	// +optional
	Name string `json:"name,omitempty"`
}

// SandboxConfig has labels and annotations for the container runtime, which can pass them to the registry.
type SandboxConfig struct {
	// labels are sent unchanged.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are sent unchanged, together with the annotations of the agent.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ImagePullPolicy decides whether an image is pulled that the node already has. The default is IfNotPresent.
type ImagePullPolicy string

// Values of ImagePullPolicy. Empty means PullIfNotPresent.
const (
	// PullAlways contacts the registry each time.
	PullAlways ImagePullPolicy = "Always"
	// PullIfNotPresent uses the image of the node without contacting the registry.
	PullIfNotPresent ImagePullPolicy = "IfNotPresent"
)

// ImageTagSpec is one tag of an image.
type ImageTagSpec struct {
	// tag is a tag, or a digest such as sha256:... .
	Tag string `json:"tag"`
	// createdAt is when the tag was requested. The default is the time of the request to the API server.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// pullPolicy limits the attempts and how long the entry is kept.
	// +optional
	PullPolicy *ImageTagPullPolicy `json:"pullPolicy,omitempty"`
	// ownerReferences are the objects that need the tag. When the last ImagePullJob among them is deleted, the tag is
	// removed. A tag without owners is kept for ttlSecondsAfterFinished.
	// +optional
	OwnerReferences []corev1.ObjectReference `json:"ownerReferences,omitempty"`
	// version is increased for each new round of pulling. A status of another version is outdated.
	// +optional
	Version int64 `json:"version,omitempty"`
	// imagePullPolicy is Always or IfNotPresent, the default.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImageTagPullPolicy limits the attempts to pull a tag, and how long its entry is kept.
type ImageTagPullPolicy struct {
	// timeoutSeconds limits one attempt. The default is 600.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// backoffLimit is how many attempts follow a failed first one. The default is 3.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// ttlSecondsAfterFinished is how long the entry is kept after the pull ended.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
	// activeDeadlineSeconds limits all attempts together, from the start of the first.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
}

// NodeImageStatus has the progress of the node. Its numbers count tags.
type NodeImageStatus struct {
	// desired is the number of tags that the node should have.
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`
	// succeeded is the number of tags that the node has.
	// +optional
	// +kubebuilder:default=0
	Succeeded int32 `json:"succeeded"`
	// failed is the number of tags with a failed pull.
	// +optional
	// +kubebuilder:default=0
	Failed int32 `json:"failed"`
	// pulling is the number of tags that are being pulled.
	// +optional
	// +kubebuilder:default=0
	Pulling int32 `json:"pulling"`
	// waiting is the number of tags that wait for their turn.
	// +optional
	// +kubebuilder:default=0
	Waiting int32 `json:"waiting"`
	// imageStatuses are the states of the tags by the name of their image.
	// +optional
	ImageStatuses map[string]ImageStatus `json:"imageStatuses,omitempty"`
	// firstSyncStatus is the result of the agent's first sync of this object.
	// +optional
	FirstSyncStatus *SyncStatus `json:"firstSyncStatus,omitempty"`
}

// ImageStatus is the state of the tags of an image.
type ImageStatus struct {
	// tags are the states, sorted by tag.
	Tags []ImageTagStatus `json:"tags"`
}

// ImagePullPhase is the state of the pull of a tag.
type ImagePullPhase string

// Values of ImagePullPhase.
const (
	// ImageWaiting waits until the node pulls fewer images at a time.
	ImageWaiting ImagePullPhase = "Waiting"
	// ImagePulling is being pulled.
	ImagePulling ImagePullPhase = "Pulling"
	// ImageSucceeded is on the node.
	ImageSucceeded ImagePullPhase = "Succeeded"
	// ImageFailed has failed and is not retried. The message has the reason.
	ImageFailed ImagePullPhase = "Failed"
)

// ImageTagStatus is the state of one tag.
type ImageTagStatus struct {
	// tag as in the spec.
	Tag string `json:"tag"`
	// phase of the pull.
	Phase ImagePullPhase `json:"phase"`
	// progress in percent.
	// +optional
	Progress int32 `json:"progress,omitempty"`
	// startTime is when the first attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the pull ended, with success or failure.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// version of the spec that this state belongs to.
	// +optional
	Version int64 `json:"version,omitempty"`
	// imageID is the name of the image and its ID in the runtime.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// message is the reason why the pull failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncPhase is the result of a sync.
type SyncPhase string

// Values of SyncPhase.
const (
	SyncSucceeded SyncPhase = "Succeeded"
	SyncFailed    SyncPhase = "Failed"
)

// SyncStatus is the result of a sync of the agent.
type SyncStatus struct {
	// syncAt is when it ended.
	// +optional
	SyncAt metav1.Time `json:"syncAt,omitempty,omitzero"`
	// status is Succeeded or Failed.
	// +optional
	Status SyncPhase `json:"status,omitempty"`
	// message is the reason of a failure.
	// +optional
	Message string `json:"message,omitempty"`
}
