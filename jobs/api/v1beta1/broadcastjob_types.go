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
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".status.desired",description="The number of nodes that are to run a pod."
// +kubebuilder:printcolumn:name="Active",type="integer",JSONPath=".status.active",description="The number of pods that are running."
// +kubebuilder:printcolumn:name="Succeeded",type="integer",JSONPath=".status.succeeded",description="The number of pods that succeeded."
// +kubebuilder:printcolumn:name="Failed",type="integer",JSONPath=".status.failed",description="The number of pods that failed."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the job was created."
type BroadcastJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what runs, and how.
	// +optional
	Spec BroadcastJobSpec `json:"spec,omitempty"`
	// status says how far the job is.
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

// BroadcastJobSpec says what runs, and how.
type BroadcastJobSpec struct {
	// parallelism is how many pods run at a time: a number, or a percentage of status.desired, rounded up. Absent means
	// all.
	// +optional
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`
	// template is what pods are made from. A change concerns pods that are made later.
	Template corev1.PodTemplateSpec `json:"template"`
	// completionPolicy says when the job has completed.
	// +optional
	CompletionPolicy CompletionPolicy `json:"completionPolicy,omitempty,omitzero"`
	// paused starts no pods while it is true; those that run go on.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// failurePolicy says what follows when a pod fails.
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty,omitzero"`
	// podFailurePolicy says of pods by how they have failed what follows, by the rules of a Job, of which the first that
	// matches counts: FailJob fails the job, whatever failurePolicy says; Ignore has the pod replaced, 10 s after its end,
	// and it is in no number; Count leaves it to failurePolicy, as do pods that no rule matches. FailIndex is not
	// supported. The template's restartPolicy must be Never.
	// +optional
	PodFailurePolicy *batchv1.PodFailurePolicy `json:"podFailurePolicy,omitempty"`
}

// FailurePolicyType says what follows when a pod fails.
type FailurePolicyType string

// Values of FailurePolicyType. Empty means FailFast.
const (
	// FailFast fails the job and deletes the pods that are running.
	FailFast FailurePolicyType = "FailFast"
	// FailContinue goes on with the other nodes.
	FailContinue FailurePolicyType = "Continue"
	// FailPause pauses the job until a user sets paused to false.
	FailPause FailurePolicyType = "Pause"
)

// FailurePolicy says what follows when a pod fails.
type FailurePolicy struct {
	// type is FailFast, the default, Continue or Pause.
	// +optional
	Type FailurePolicyType `json:"type,omitempty"`
	// restartLimit is how often the containers of a pod with restartPolicy OnFailure may restart, all together, before
	// the pod counts as failed.
	// +optional
	RestartLimit int32 `json:"restartLimit,omitempty"`
}

// BroadcastJobPhase is where a job stands.
type BroadcastJobPhase string

// Values of BroadcastJobPhase.
const (
	PhaseRunning   BroadcastJobPhase = "running"
	PhasePaused    BroadcastJobPhase = "paused"
	PhaseCompleted BroadcastJobPhase = "completed"
	PhaseFailed    BroadcastJobPhase = "failed"
)

// BroadcastJobStatus says how far a job is.
type BroadcastJobStatus struct {
	// conditions say how the job ended.
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
	// desired is how many nodes are to run the pod.
	// +optional
	// +kubebuilder:default=0
	Desired int32 `json:"desired"`
	// phase is running, paused, completed or failed.
	// +optional
	Phase BroadcastJobPhase `json:"phase,omitempty"`
	// message says for what the job waits, or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// failures say why pods failed, for the first 20 nodes: those whose pod failed by itself come first, by the
	// names of the nodes.
	// +optional
	// +listType=map
	// +listMapKey=node
	Failures []PodFailure `json:"failures,omitempty"`
	// pausedSince is when the job was paused; absent while it is not.
	// +optional
	PausedSince *metav1.Time `json:"pausedSince,omitempty"`
	// pausedSeconds is how long the job was paused before. activeDeadlineSeconds do not run on meanwhile.
	// +optional
	PausedSeconds int64 `json:"pausedSeconds,omitempty"`
	// succeededNodes are the nodes on which the pod succeeded, 8 bytes for each: by them the operator knows such a node
	// again when its pod is gone.
	// +optional
	SucceededNodes []byte `json:"succeededNodes,omitempty"`
	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// PodFailure says why the pod of a node failed.
type PodFailure struct {
	// node is the name of the node.
	Node string `json:"node"`
	// pod is the name of the pod.
	// +optional
	Pod string `json:"pod,omitempty"`
	// reason is one word, such as Error, OOMKilled or Evicted.
	// +optional
	Reason string `json:"reason,omitempty"`
	// exitCode is that of the container that failed; absent if none ended.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// message is the termination message of that container or what the node said, at most 256 bytes.
	// +optional
	Message string `json:"message,omitempty"`
}

// JobConditionType is a type of condition of a BroadcastJob.
type JobConditionType string

// Values of JobConditionType.
const (
	// JobComplete says that every node has run its pod to an end.
	JobComplete JobConditionType = "Complete"
	// JobFailed says that the job was given up.
	JobFailed JobConditionType = "Failed"
)

// JobCondition says how a BroadcastJob ended.
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
