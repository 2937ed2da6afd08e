package contract

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImagePullJob is owned by module jobs. Workloads create such jobs to have images on the nodes
// before their pods need them, and delete them when their rollout has ended.
const (
	// ImagePullJobKind is the kind's name.
	ImagePullJobKind = "ImagePullJob"
	// ImagePullJobResource is its name in paths and in discovery.
	ImagePullJobResource = "imagepulljobs"
	// ImagePullJobAlways completes a job once every selected node has pulled or failed.
	ImagePullJobAlways = "Always"
)

// ImagePullJobVersions are the versions of the kind, the best first. All have the same fields.
func ImagePullJobVersions() []string { return []string{"v1beta1", "v1alpha1"} }

// ImagePullJobGVK is the kind in a version.
func ImagePullJobGVK(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: AppsGroup, Version: version, Kind: ImagePullJobKind}
}

// ImagePullJobSpec has the fields of an ImagePullJob's spec that workloads write.
type ImagePullJobSpec struct {
	// Image is a reference of an image.
	Image string `json:"image"`
	// PodSelector selects the nodes: those that run matching pods of the job's namespace.
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// PullSecrets are names of secrets in the job's namespace.
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Parallelism is how many nodes pull at a time: an integer, also as text, never a percentage. 0
	// holds the job; nil means 1.
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// PullPolicy bounds the attempts of one node.
	PullPolicy ImagePullJobPullPolicy `json:"pullPolicy"`
	// CompletionPolicy decides when the job ends.
	CompletionPolicy ImagePullJobCompletionPolicy `json:"completionPolicy"`
	// SandboxConfig is handed to the container runtime with the pull.
	SandboxConfig ImagePullJobSandboxConfig `json:"sandboxConfig"`
}

// ImagePullJobPullPolicy bounds the attempts of one node.
type ImagePullJobPullPolicy struct {
	// TimeoutSeconds bounds one attempt.
	TimeoutSeconds int32 `json:"timeoutSeconds"`
	// BackoffLimit is how many attempts follow a failed first one.
	BackoffLimit int32 `json:"backoffLimit"`
}

// ImagePullJobCompletionPolicy decides when a job ends.
type ImagePullJobCompletionPolicy struct {
	// Type is ImagePullJobAlways.
	Type string `json:"type"`
	// TTLSecondsAfterFinished is how long a complete job stays.
	TTLSecondsAfterFinished int32 `json:"ttlSecondsAfterFinished"`
}

// ImagePullJobSandboxConfig shows a registry the pods for which an image is pulled.
type ImagePullJobSandboxConfig struct {
	// Labels are the labels of the pods.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are the annotations of the pods.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// NewImagePullJob is a job in the form that a client without the kind's Go type can create. It returns an error if the
// parts cannot be represented as JSON.
func NewImagePullJob(version string, meta metav1.ObjectMeta, spec ImagePullJobSpec) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     ImagePullJobSpec  `json:"spec"`
	}{meta, spec})
	if err != nil {
		return nil, fmt.Errorf("make image pull job %s: %w", meta.Name, err)
	}
	job := &unstructured.Unstructured{Object: fields}
	job.SetGroupVersionKind(ImagePullJobGVK(version))
	return job, nil
}
