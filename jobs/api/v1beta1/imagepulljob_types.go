package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImagePullJob pulls an image on nodes before pods need it there.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.desired",description="The number of nodes that should pull the image."
// +kubebuilder:printcolumn:name="ACTIVE",type="integer",JSONPath=".status.active",description="The number of nodes that are pulling the image."
// +kubebuilder:printcolumn:name="SUCCEED",type="integer",JSONPath=".status.succeeded",description="The number of nodes that have the image."
// +kubebuilder:printcolumn:name="FAILED",type="integer",JSONPath=".status.failed",description="The number of nodes with a failed pull."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the job was created."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.message",description="The progress of the job."
type ImagePullJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the image, the nodes and the policies of the pull.
	// +optional
	Spec ImagePullJobSpec `json:"spec,omitempty"`
	// status has the progress of the job.
	// +optional
	Status ImagePullJobStatus `json:"status,omitempty,omitzero"`
}

// ImagePullJobList is a list of ImagePullJobs.
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the ImagePullJobs.
	Items []ImagePullJob `json:"items"`
}

// ImagePullJobSpec has the image, the nodes and the policies of the pull.
type ImagePullJobSpec struct {
	// image is a reference of an image. The default tag is latest. If there are a tag and a digest, the digest is pulled.
	Image string `json:"image"`

	ImagePullJobTemplate `json:",inline"`
}

// ImagePullJobTemplate has the nodes and the policies of the pull.
type ImagePullJobTemplate struct {
	// pullSecrets are names of secrets in the namespace of the job, with the credentials of the registry. They are
	// immutable.
	// +optional
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// selector selects the nodes, by their names or by their labels. Without selector and podSelector, all nodes are
	// selected.
	// +optional
	Selector *ImagePullJobNodeSelector `json:"selector,omitempty"`
	// podSelector selects the nodes that run matching pods in the namespace of the job. It excludes selector.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// parallelism is how many nodes pull at a time: a number, also as a string. 0 starts no pull. The default
	// is 1.
	// +optional
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// pullPolicy limits the attempts of a node.
	// +optional
	PullPolicy *PullPolicy `json:"pullPolicy,omitempty"`
	// completionPolicy sets when the job has completed.
	CompletionPolicy CompletionPolicy `json:"completionPolicy"`
	// sandboxConfig is sent to the container runtime with each pull.
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`
	// imagePullPolicy is Always or IfNotPresent, the default: a node that has the image succeeds without a pull.
	// +optional
	ImagePullPolicy ImagePullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullJobNodeSelector selects nodes: by names, or by labels.
type ImagePullJobNodeSelector struct {
	// names are names of nodes. They exclude matchLabels and matchExpressions.
	// +optional
	Names []string `json:"names,omitzero"`

	metav1.LabelSelector `json:",inline"`
}

// PullPolicy limits the attempts of a node.
type PullPolicy struct {
	// timeoutSeconds limits one attempt. The default is 600.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// backoffLimit is how many attempts follow a failed first one. The default is 3.
	// +optional
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// Defaults of pullPolicy.
const (
	// DefaultPullTimeoutSeconds bounds one attempt.
	DefaultPullTimeoutSeconds = 600
	// DefaultPullBackoffLimit is how many attempts follow a failed first one.
	DefaultPullBackoffLimit = 3
)

// CompletionPolicyType decides whether a job completes.
type CompletionPolicyType string

// Values of CompletionPolicyType. Empty means CompletionAlways.
const (
	// CompletionAlways completes a job when all nodes have ended, with success or failure.
	CompletionAlways CompletionPolicyType = "Always"
	// CompletionNever keeps the job running for nodes that join later.
	CompletionNever CompletionPolicyType = "Never"
)

// CompletionPolicy sets when a job has completed, and when it is deleted.
type CompletionPolicy struct {
	// type is Always, the default, or Never.
	// +optional
	Type CompletionPolicyType `json:"type,omitempty"`
	// activeDeadlineSeconds limits the time from startTime to completionTime. It is only allowed with type Always.
	// +optional
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// ttlSecondsAfterFinished is how long after its completion the job is deleted. By default the job is kept. It is only
	// allowed with type Always.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SandboxConfig has labels and annotations for the container runtime, which can pass them to the registry.
type SandboxConfig struct {
	// labels are sent unchanged.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are sent unchanged.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ImagePullPolicy decides whether an image is pulled that the node already has. The default is IfNotPresent.
type ImagePullPolicy string

// Values of ImagePullPolicy. Empty means PullIfNotPresent.
const (
	// PullAlways contacts the registry every time.
	PullAlways ImagePullPolicy = "Always"
	// PullIfNotPresent uses the image of the node.
	PullIfNotPresent ImagePullPolicy = "IfNotPresent"
)

// ImagePullJobStatus has the progress of a job. The numbers count nodes.
type ImagePullJobStatus struct {
	// startTime is when the operator first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the job completed or exceeded its deadline.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// desired is how many nodes should pull the image.
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`
	// active is how many nodes are pulling the image.
	// +optional
	Active int32 `json:"active,omitempty"`
	// succeeded is how many nodes have the image.
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed is how many nodes failed to pull the image.
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// message is the progress of the job in words.
	// +optional
	Message string `json:"message,omitempty"`
	// failedNodes are the names of the failed nodes, sorted.
	// +optional
	FailedNodes []string `json:"failedNodes,omitempty"`
	// failures are the reasons for the first 20 of failedNodes.
	// +optional
	// +listType=map
	// +listMapKey=node
	Failures []NodeFailure `json:"failures,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// MaxFailures is how many nodes a status gives the reason of.
const MaxFailures = 20

// NodeFailure is the reason why a node failed.
type NodeFailure struct {
	// node is the name of the node.
	Node string `json:"node"`
	// message is the last message of the node.
	// +optional
	Message string `json:"message,omitempty"`
}
