package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// DaemonSet runs one pod on every eligible node. It updates pods in place if possible, with a surge, by partition and by
// node selector.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=daemon;ads
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".status.desiredNumberScheduled",description="The number of nodes that should run a pod."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.currentNumberScheduled",description="The number of those that have a pod."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.numberReady",description="The number of those with a ready pod."
// +kubebuilder:printcolumn:name="UP-TO-DATE",type="integer",JSONPath=".status.updatedNumberScheduled",description="The number of those with a pod of the update revision."
// +kubebuilder:printcolumn:name="AVAILABLE",type="integer",JSONPath=".status.numberAvailable",description="The number of those with an available pod."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the DaemonSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The names of the template's containers."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template's containers."
// +kubebuilder:printcolumn:name="REVISION",type="string",priority=1,JSONPath=".status.daemonSetHash",description="The update revision."
// +kubebuilder:printcolumn:name="REASON",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="The reason of condition Ready."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="The message of condition Ready."
type DaemonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the pods, their nodes and their updates.
	// +optional
	Spec DaemonSetSpec `json:"spec,omitempty"`
	// status is the state that the controller last observed.
	// +optional
	Status DaemonSetStatus `json:"status,omitempty,omitzero"`
}

// DaemonSetList is a list of DaemonSets.
// +kubebuilder:object:root=true
type DaemonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the DaemonSets.
	Items []DaemonSet `json:"items"`
}

// DaemonSetSpec defines the pods, their nodes and their updates.
type DaemonSetSpec struct {
	// selector selects the pods of the set. It must match the template's labels, and is immutable.
	Selector *metav1.LabelSelector `json:"selector"`
	// template is the template of new pods. Its nodeSelector, affinity and tolerations select the nodes. A change of it
	// creates a new revision.
	Template corev1.PodTemplateSpec `json:"template"`
	// updateStrategy defines how pods are updated.
	// +optional
	UpdateStrategy v1beta1.DaemonSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`
	// minReadySeconds is the time that a pod must have been ready to count as available. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// burstReplicas is the number of pods that are created, deleted or updated in place at a time, or a percentage of
	// status.desiredNumberScheduled, rounded down, but at least 1. The default is 250.
	// +optional
	// +kubebuilder:default=250
	BurstReplicas *intstr.IntOrString `json:"burstReplicas,omitempty"`
	// revisionHistoryLimit is the number of older revisions that are kept. Revisions in use count, too, and are always
	// kept. The default is 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// lifecycle has hooks that delay the deletion of a pod. Only preDelete has an effect.
	// +optional
	Lifecycle *workload.Lifecycle `json:"lifecycle,omitempty"`
}

// DaemonSetStatus is the state that the controller last observed. If a node has several pods, the oldest one counts.
type DaemonSetStatus struct {
	// currentNumberScheduled is the number of nodes that should run a pod and have at least one.
	// +optional
	// +kubebuilder:default=0
	CurrentNumberScheduled int32 `json:"currentNumberScheduled"`
	// numberMisscheduled is the number of nodes that should not run a pod but have one.
	// +optional
	// +kubebuilder:default=0
	NumberMisscheduled int32 `json:"numberMisscheduled"`
	// desiredNumberScheduled is the number of nodes that should run a pod.
	// +optional
	// +kubebuilder:default=0
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`
	// numberReady is the number of nodes that should run a pod and have a ready one.
	// +optional
	// +kubebuilder:default=0
	NumberReady int32 `json:"numberReady"`
	// observedGeneration is the generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// updatedNumberScheduled is the number of nodes that should run a pod and have one of the update revision.
	// +optional
	// +kubebuilder:default=0
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled"`
	// numberAvailable is the number of nodes that should run a pod and have one that has been ready for
	// minReadySeconds and is not held by an update in place.
	// +optional
	// +kubebuilder:default=0
	NumberAvailable int32 `json:"numberAvailable"`
	// numberUnavailable is desiredNumberScheduled minus numberAvailable.
	// +optional
	// +kubebuilder:default=0
	NumberUnavailable int32 `json:"numberUnavailable"`
	// numberUnreadyNodes is the number of nodes that should run a pod, or have one, and are not Ready.
	// +optional
	// +kubebuilder:default=0
	NumberUnreadyNodes int32 `json:"numberUnreadyNodes"`
	// numberSkippedNodes is the number of nodes without an available pod that unreadyNodePolicy excludes from maxUnavailable
	// and maxSurge.
	// +optional
	// +kubebuilder:default=0
	NumberSkippedNodes int32 `json:"numberSkippedNodes"`
	// collisionCount is how often the name of a new revision was taken. The hash in the next name depends on it.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// conditions are the latest observations of the state, at most one of each type.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []workload.Condition `json:"conditions,omitempty"`
	// currentRevision is the short hash of the last revision that was rolled out to all nodes: every Ready node had an
	// available pod of it, without a limit by partition or selector. The first revision counts from the start.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// daemonSetHash is the short hash of the template. Updated pods have it in label controller-revision-hash.
	// +optional
	DaemonSetHash string `json:"daemonSetHash,omitempty"`
	// updateStartTime is the time of the last change of daemonSetHash.
	// +optional
	UpdateStartTime *metav1.Time `json:"updateStartTime,omitempty"`
}
