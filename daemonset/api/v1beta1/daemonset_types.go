package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

// DaemonSet runs one pod on every eligible node. It updates pods in place if possible, with a surge, by partition and by
// node selector.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
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
// +kubebuilder:printcolumn:name="REVISION",type="string",priority=1,JSONPath=".status.updateRevision",description="The update revision."
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
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`
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
	// scaleStrategy limits the creation of the first pods.
	// +optional
	ScaleStrategy *DaemonSetScaleStrategy `json:"scaleStrategy,omitempty"`
}

// DaemonSetScaleStrategy limits the creation of the first pods.
type DaemonSetScaleStrategy struct {
	// partitionedScaling also applies updateStrategy.rollingUpdate.partition to nodes that have yet to get their first pod:
	// that many nodes stay without a pod. It needs updateStrategy.type RollingUpdate.
	// +optional
	PartitionedScaling bool `json:"partitionedScaling,omitempty"`
}

// DaemonSetUpdateStrategyType defines when pods are updated.
type DaemonSetUpdateStrategyType string

// Values of DaemonSetUpdateStrategyType. Empty means RollingUpdate.
const (
	// RollingUpdateStrategyType updates pods within the limits of rollingUpdate.
	RollingUpdateStrategyType DaemonSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteStrategyType updates a pod only after you delete it.
	OnDeleteStrategyType DaemonSetUpdateStrategyType = "OnDelete"
)

// DaemonSetUpdateStrategy defines how pods are updated.
type DaemonSetUpdateStrategy struct {
	// type is RollingUpdate (the default) or OnDelete.
	// +optional
	Type DaemonSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate has the settings of type RollingUpdate. Type OnDelete ignores it.
	// +optional
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty"`
}

// RollingUpdateType defines how an update changes a pod.
type RollingUpdateType string

// Values of RollingUpdateType. Empty means Standard.
const (
	// StandardRollingUpdateType deletes the pod and creates one of the update revision. With maxSurge, the new pod is
	// created first.
	StandardRollingUpdateType RollingUpdateType = "Standard"
	// InPlaceRollingUpdateType updates the running pod if possible, and recreates it otherwise.
	InPlaceRollingUpdateType RollingUpdateType = "InPlaceIfPossible"
	// SurgingRollingUpdateType is accepted in v1alpha1 and means Standard with maxSurge 1 and maxUnavailable 0.
	SurgingRollingUpdateType RollingUpdateType = "Surging"
)

// UnreadyNodePolicy defines whether NotReady nodes use up maxUnavailable and maxSurge.
type UnreadyNodePolicy string

// Values of UnreadyNodePolicy. Empty means Count.
const (
	// CountUnreadyNodes counts NotReady nodes like other nodes, as the built-in DaemonSet does.
	CountUnreadyNodes UnreadyNodePolicy = "Count"
	// SkipUnreadyNodes excludes unavailable pods on NotReady nodes from maxUnavailable and maxSurge.
	SkipUnreadyNodes UnreadyNodePolicy = "Skip"
	// SkipNodesUnreadyBeforeUpdate is Skip for nodes that became NotReady before status.updateStartTime. A node that became
	// NotReady during the update counts, because the update may be the cause.
	SkipNodesUnreadyBeforeUpdate UnreadyNodePolicy = "SkipIfNotReadyBeforeUpdate"
)

// UnselectedNodePolicy defines the revision of pods on nodes that selector and partition exclude.
type UnselectedNodePolicy string

// Values of UnselectedNodePolicy. Empty means Ignore.
const (
	// IgnoreUnselectedNodes leaves pods on these nodes as they are, and creates new pods at the update revision.
	IgnoreUnselectedNodes UnselectedNodePolicy = "Ignore"
	// RevertUnselectedNodes returns updated pods on these nodes to status.currentRevision, the last revision that was
	// rolled out to all nodes, and creates new pods at it. If the template is that revision, all nodes are updated to it.
	RevertUnselectedNodes UnselectedNodePolicy = "Revert"
)

// InPlaceUpdateStrategy has the settings of updates in place.
type InPlaceUpdateStrategy struct {
	// resizeDeadlineSeconds is the time that a pod waits for cpu and memory that its node defers or is unable to give to a
	// running pod. Then the pod is recreated, within maxUnavailable. Absent means that it waits forever. From Kubernetes
	// 1.36 on, the API server rejects a resize to more than the node has. Such a pod always waits, because a new pod on the
	// node would have to wait, too.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ResizeDeadlineSeconds *int32 `json:"resizeDeadlineSeconds,omitempty"`
}

// RollingUpdateDaemonSet defines on which nodes pods are updated, how many at a time and how.
type RollingUpdateDaemonSet struct {
	// rollingUpdateType is Standard (the default) or InPlaceIfPossible. v1alpha1 also accepts Surging, which is
	// stored as Standard with maxSurge 1 and maxUnavailable 0.
	// +optional
	RollingUpdateType RollingUpdateType `json:"rollingUpdateType,omitempty"`
	// inPlaceUpdateStrategy has the settings of updates in place.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
	// maxUnavailable is the number of nodes that may be without an available pod during the update, or a percentage of
	// status.desiredNumberScheduled, rounded up. The default is 1, and 0 if maxSurge is set. Set exactly one of
	// maxUnavailable and maxSurge to a value other than 0.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxSurge is the number of nodes that may run an old and a new pod during the update, or a percentage of
	// status.desiredNumberScheduled, rounded up. The default is 0.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// selector selects nodes by their labels. Pods are updated on these nodes only. Absent means all nodes.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// partition is the number of nodes that keep pods of the older revision, or a percentage of the nodes that run or
	// should run a pod, rounded down. The default is 0.
	// +optional
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// paused stops updates. Missing and failed pods are still replaced.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// unreadyNodePolicy is Count (the default), Skip or SkipIfNotReadyBeforeUpdate. It defines whether NotReady nodes use
	// up maxUnavailable and maxSurge.
	// +optional
	UnreadyNodePolicy UnreadyNodePolicy `json:"unreadyNodePolicy,omitempty"`
	// unselectedNodePolicy is Ignore (the default) or Revert. It applies to nodes that selector and partition exclude.
	// Ignore leaves their pods as they are and creates new pods at the update revision. Revert returns updated pods to
	// status.currentRevision and creates new pods at it.
	// +optional
	UnselectedNodePolicy UnselectedNodePolicy `json:"unselectedNodePolicy,omitempty"`
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
	// updateRevision is the short hash of the template. Updated pods have it in label controller-revision-hash.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// updateStartTime is the time of the last change of updateRevision.
	// +optional
	UpdateStartTime *metav1.Time `json:"updateStartTime,omitempty"`
}
