package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

// DaemonSet keeps one pod running on every eligible node, and updates them in place where that is possible,
// in surges, by partition and by node selector.
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
type DaemonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which pods are wanted, on which nodes, and how they change.
	// +optional
	Spec DaemonSetSpec `json:"spec,omitempty"`
	// status says what was seen at observedGeneration.
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

// DaemonSetSpec says which pods are wanted, on which nodes, and how they change.
type DaemonSetSpec struct {
	// selector selects the pods of the set. It must match the template's labels and never changes.
	Selector *metav1.LabelSelector `json:"selector"`
	// template is what new pods are made from, and says by nodeSelector, affinity and tolerations which nodes
	// run one. Changing it makes a new revision.
	Template corev1.PodTemplateSpec `json:"template"`
	// updateStrategy says how pods move to the update revision.
	// +optional
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`
	// minReadySeconds is how long a pod must have been ready to count as available. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// burstReplicas is how many pods are created, deleted or updated in place at a time, as a number or as a
	// percentage of the nodes that should run one, rounded down, but at least 1. The default is 250.
	// +optional
	// +kubebuilder:default=250
	BurstReplicas *intstr.IntOrString `json:"burstReplicas,omitempty"`
	// revisionHistoryLimit is the number of older revisions that are kept. Those in use count, too, and are never
	// deleted. The default is 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// lifecycle holds pods in a state until the outside world agrees that they go on. Only preDelete has an effect.
	// +optional
	Lifecycle *workload.Lifecycle `json:"lifecycle,omitempty"`
	// scaleStrategy says how pods are added.
	// +optional
	ScaleStrategy *DaemonSetScaleStrategy `json:"scaleStrategy,omitempty"`
}

// DaemonSetScaleStrategy says how pods are added.
type DaemonSetScaleStrategy struct {
	// partitionedScaling applies updateStrategy.rollingUpdate.partition to nodes that never had a pod of the set,
	// too: as many of them stay without one. It needs strategy RollingUpdate.
	// +optional
	PartitionedScaling bool `json:"partitionedScaling,omitempty"`
}

// DaemonSetUpdateStrategyType says when pods move to the update revision.
type DaemonSetUpdateStrategyType string

// Values of DaemonSetUpdateStrategyType. Empty means RollingUpdate.
const (
	// RollingUpdateStrategyType moves them within the limits of rollingUpdate.
	RollingUpdateStrategyType DaemonSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteStrategyType replaces a pod only once somebody has deleted it.
	OnDeleteStrategyType DaemonSetUpdateStrategyType = "OnDelete"
)

// DaemonSetUpdateStrategy says how pods move to the update revision.
type DaemonSetUpdateStrategy struct {
	// type is RollingUpdate (the default) or OnDelete.
	// +optional
	Type DaemonSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate counts with type RollingUpdate only.
	// +optional
	RollingUpdate *RollingUpdateDaemonSet `json:"rollingUpdate,omitempty"`
}

// RollingUpdateType says what an update does to a pod.
type RollingUpdateType string

// Values of RollingUpdateType. Empty means Standard.
const (
	// StandardRollingUpdateType deletes the pod and creates one of the update revision: before if maxSurge
	// allows that, after otherwise.
	StandardRollingUpdateType RollingUpdateType = "Standard"
	// InPlaceRollingUpdateType changes the running pod where that is possible and recreates it otherwise.
	InPlaceRollingUpdateType RollingUpdateType = "InPlaceIfPossible"
	// SurgingRollingUpdateType is a word of v1alpha1 for Standard with maxSurge 1 and maxUnavailable 0.
	SurgingRollingUpdateType RollingUpdateType = "Surging"
)

// UnreadyNodePolicy says whether nodes that are not Ready use up maxUnavailable and maxSurge.
type UnreadyNodePolicy string

// Values of UnreadyNodePolicy. Empty means Count.
const (
	// CountUnreadyNodes treats them like all nodes, as the built-in DaemonSet does.
	CountUnreadyNodes UnreadyNodePolicy = "Count"
	// SkipUnreadyNodes lets their unavailable pods use up nothing.
	SkipUnreadyNodes UnreadyNodePolicy = "Skip"
	// SkipNodesUnreadyBeforeUpdate is Skip for nodes that have not been Ready since before status.updateStartTime.
	// A node that became so during the update counts: the update may be why.
	SkipNodesUnreadyBeforeUpdate UnreadyNodePolicy = "SkipIfNotReadyBeforeUpdate"
)

// UnselectedNodePolicy says what becomes of pods on nodes that selector and partition leave out.
type UnselectedNodePolicy string

// Values of UnselectedNodePolicy. Empty means Ignore.
const (
	// IgnoreUnselectedNodes leaves their pods as they are, updated ones too, and creates new ones at the update revision.
	IgnoreUnselectedNodes UnselectedNodePolicy = "Ignore"
	// RevertUnselectedNodes returns their updated pods to, and creates new ones at, status.currentRevision, the last
	// revision that was rolled out to all nodes. If the template is that revision, all nodes go to it.
	RevertUnselectedNodes UnselectedNodePolicy = "Revert"
)

// InPlaceUpdateStrategy says how a pod is updated in place.
type InPlaceUpdateStrategy struct {
	// resizeDeadlineSeconds is how long a pod waits for cpu and memory that its node puts off, or cannot give to a running
	// pod. Then it is recreated, as maxUnavailable allows. Absent means that it waits for ever. A resize to more than the
	// node has, which the server refuses from Kubernetes 1.36 on, waits in any case: the new pod would, too.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ResizeDeadlineSeconds *int32 `json:"resizeDeadlineSeconds,omitempty"`
}

// RollingUpdateDaemonSet says on which nodes pods are updated, how many at a time and how.
type RollingUpdateDaemonSet struct {
	// rollingUpdateType is Standard (the default) or InPlaceIfPossible. v1alpha1 also accepts Surging, which is
	// stored as Standard with maxSurge 1 and maxUnavailable 0.
	// +optional
	RollingUpdateType RollingUpdateType `json:"rollingUpdateType,omitempty"`
	// inPlaceUpdateStrategy says how a pod is updated in place.
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
	// maxUnavailable is the number of nodes whose pod may be unavailable during the update, or their percentage of
	// the nodes that should run one, rounded up. The default is 1, and 0 if maxSurge is given. Exactly one of both is 0.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxSurge is the number of nodes that may run an old and a new pod during the update, or their percentage of
	// the nodes that should run one, rounded up. The default is 0.
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// selector over the labels of nodes: pods on other nodes are not updated. Absent means all nodes.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// partition is the number of nodes whose pods are not updated, or their percentage of the nodes that should
	// run one, rounded down. The default is 0.
	// +optional
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// paused stops updates. Missing and failed pods are still replaced.
	// +optional
	Paused *bool `json:"paused,omitempty"`
	// unreadyNodePolicy says whether nodes that are not Ready use up maxUnavailable and maxSurge: Count (the
	// default), Skip or SkipIfNotReadyBeforeUpdate.
	// +optional
	UnreadyNodePolicy UnreadyNodePolicy `json:"unreadyNodePolicy,omitempty"`
	// unselectedNodePolicy says what becomes of pods on nodes that selector and partition leave out: Ignore (the
	// default) leaves updated pods updated and creates new ones at the update revision; Revert returns them to, and
	// creates new ones at, status.currentRevision, and updates all nodes if that is the revision of the template.
	// +optional
	UnselectedNodePolicy UnselectedNodePolicy `json:"unselectedNodePolicy,omitempty"`
}

// DaemonSetStatus says what was seen at observedGeneration. Of several pods on a node the oldest counts.
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
	// numberUnavailable is desiredNumberScheduled less numberAvailable.
	// +optional
	// +kubebuilder:default=0
	NumberUnavailable int32 `json:"numberUnavailable"`
	// numberUnreadyNodes is the number of nodes that should run a pod, or have one, and are not Ready.
	// +optional
	// +kubebuilder:default=0
	NumberUnreadyNodes int32 `json:"numberUnreadyNodes"`
	// numberSkippedNodes is the number of those that have no available pod and that unreadyNodePolicy lets use up
	// nothing of maxUnavailable and maxSurge.
	// +optional
	// +kubebuilder:default=0
	NumberSkippedNodes int32 `json:"numberSkippedNodes"`
	// collisionCount keeps names of revisions apart whose hashes are equal by accident.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// conditions are at most one of each type.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []workload.Condition `json:"conditions,omitempty"`
	// currentRevision is the short hash of the last revision that was rolled out to all nodes: while partition and selector
	// kept none back, each node that is Ready had an available pod of it.
	// The first revision counts from the begin.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// updateRevision is the short hash of the template, which stands in label controller-revision-hash of updated pods.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// updateStartTime is when updateRevision changed last.
	// +optional
	UpdateStartTime *metav1.Time `json:"updateStartTime,omitempty"`
}
