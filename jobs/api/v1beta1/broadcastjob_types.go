package v1beta1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// BroadcastJob runs one pod to completion on every node that fits.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
	Spec BroadcastJobSpec `json:"spec,omitempty"`
	// status has the progress of the job.
	// +optional
	Status BroadcastJobStatus `json:"status,omitempty,omitzero"`
}

// BroadcastJobList is a list of BroadcastJobs.
// +kubebuilder:object:root=true
type BroadcastJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the BroadcastJobs.
	Items []BroadcastJob `json:"items"`
}

// BroadcastJobSpec has the pod template and the policies of a job.
type BroadcastJobSpec struct {
	// parallelism is how many pods run at a time: a number, or a percentage of status.desired, rounded up. The
	// default is all pods.
	// +optional
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// template is the template of the pods. A change applies to pods that are created later.
	Template corev1.PodTemplateSpec `json:"template"`
	// completionPolicy sets when the job has completed.
	// +optional
	CompletionPolicy CompletionPolicy `json:"completionPolicy,omitempty,omitzero"`
	// paused stops the creation of pods while it is true. Running pods continue.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// failurePolicy sets how a failed pod is handled.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty,omitzero"`
	// podFailurePolicy decides what happens when a pod fails, as in a Job. The first matching rule applies. FailJob fails the
	// job with any failurePolicy. Ignore replaces the pod 10 s after its end and leaves it out of the numbers. With Count,
	// or without a matching rule, failurePolicy applies. FailIndex is not supported. The restartPolicy of the template must
	// be Never.
	// +optional
	PodFailurePolicy *batchv1.PodFailurePolicy `json:"podFailurePolicy,omitempty"`
}

// FailurePolicyType sets how a failed pod is handled. The default is FailFast.
type FailurePolicyType string

// Values of FailurePolicyType. Empty means FailFast.
const (
	// FailFast fails the job and deletes the pods that are running.
	FailFast FailurePolicyType = "FailFast"
	// FailContinue continues with the other nodes.
	FailContinue FailurePolicyType = "Continue"
	// FailPause pauses the job until a user sets paused to false.
	FailPause FailurePolicyType = "Pause"
)

// FailurePolicy sets how a failed pod is handled.
type FailurePolicy struct {
	// type is FailFast, the default, Continue or Pause.
	// +optional
	Type FailurePolicyType `json:"type,omitempty"`
	// restartLimit is how often the containers of a pod with restartPolicy OnFailure may restart, all together, before
	// the pod counts as failed.
	// +optional
	RestartLimit int32 `json:"restartLimit,omitempty"`
}

// BroadcastJobPhase is the state of a job.
type BroadcastJobPhase string

// Values of BroadcastJobPhase.
const (
	PhaseRunning   BroadcastJobPhase = "running"
	PhasePaused    BroadcastJobPhase = "paused"
	PhaseCompleted BroadcastJobPhase = "completed"
	PhaseFailed    BroadcastJobPhase = "failed"
)

// BroadcastJobStatus has the progress of a job.
type BroadcastJobStatus struct {
	// conditions report how the job ended.
	// +optional
	Conditions []JobCondition `json:"conditions,omitempty"`
	// startTime is when the operator first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the job completed or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// active is how many pods run.
	// +optional
	// +kubebuilder:default=0
	Active int32 `json:"active"`
	// succeeded is how many nodes have run the pod with success.
	// +optional
	// +kubebuilder:default=0
	Succeeded int32 `json:"succeeded"`
	// failed is on how many nodes the pod failed.
	// +optional
	// +kubebuilder:default=0
	Failed int32 `json:"failed"`
	// desired is how many nodes should run the pod.
	// +optional
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`
	// phase is running, paused, completed or failed.
	// +optional
	Phase BroadcastJobPhase `json:"phase,omitempty"`
	// message is the reason why the job waits, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// failures are the reasons of failed pods, for up to 20 nodes. Pods that failed by themselves come first, sorted by
	// the names of the nodes.
	// +optional
	// +listType=map
	// +listMapKey=node
	Failures []PodFailure `json:"failures,omitempty"`
	// pausedSince is when the job was paused; absent while the job runs.
	// +optional
	PausedSince *metav1.Time `json:"pausedSince,omitempty"`
	// pausedSeconds is how long the job was paused in earlier pauses. Pauses do not count towards activeDeadlineSeconds.
	// +optional
	PausedSeconds int64 `json:"pausedSeconds,omitempty"`
	// succeededNodes are the nodes on which the pod succeeded, 8 bytes for each. With them the operator recognizes a node
	// after its pod was deleted.
	// +optional
	SucceededNodes []byte `json:"succeededNodes,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// PodFailure is the reason why the pod of a node failed.
type PodFailure struct {
	// node is the name of the node.
	Node string `json:"node"`
	// pod is the name of the pod.
	// +optional
	Pod string `json:"pod,omitempty"`
	// reason is one word, such as Error, OOMKilled or Evicted.
	// +optional
	Reason string `json:"reason,omitempty"`
	// exitCode is the exit code of the failed container; absent while all containers run.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// message is the termination message of that container or the message of the kubelet, up to 256 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// JobConditionType is a type of condition of a BroadcastJob.
type JobConditionType string

// Values of JobConditionType.
const (
	// JobComplete is set when the pods of all nodes have ended.
	JobComplete JobConditionType = "Complete"
	// JobFailed is set when the job has failed.
	JobFailed JobConditionType = "Failed"
)

// JobCondition reports how a BroadcastJob ended.
type JobCondition struct {
	// type is Complete or Failed.
	Type JobConditionType `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastProbeTime is when the condition was last checked.
	// +optional
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty,omitzero"`
	// lastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
	// reason is one word for machines.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is for people.
	// +optional
	Message string `json:"message,omitempty"`
}
