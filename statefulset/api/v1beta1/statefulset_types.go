package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

// StatefulSet keeps a number of pods running whose names, claims and order never change, updates
// several of them at a time, and in place where that is possible.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=sts;asts
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The number of pods wanted."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of pods that exist."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods of the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of ready pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the StatefulSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The names of the template's containers."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template's containers."
type StatefulSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which pods are wanted and how they change.
	// +optional
	Spec StatefulSetSpec `json:"spec,omitempty"`
	// status says what was seen at observedGeneration.
	// +optional
	Status StatefulSetStatus `json:"status,omitempty,omitzero"`
}

// StatefulSetList is a list of StatefulSets.
// +kubebuilder:object:root=true
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the StatefulSets.
	Items []StatefulSet `json:"items"`
}

// StatefulSetSpec says which pods are wanted and how they change.
type StatefulSetSpec struct {
	// replicas is the number of pods wanted. The default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Replicas *int32 `json:"replicas,omitempty"`
	// selector selects the pods of the set. It must match the template's labels and never changes.
	Selector *metav1.LabelSelector `json:"selector"`
	// template is what new pods are made from. Changing it makes a new revision.
	Template corev1.PodTemplateSpec `json:"template"`
	// volumeClaimTemplates: each ordinal gets a claim from each of them, which outlives its pods, and its
	// pod may mount it by its name.
	// +optional
	// +listType=atomic
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// volumeClaimUpdateStrategy says what a change of volumeClaimTemplates does to existing claims. It has
	// an effect with feature gate StatefulSetAutoResizePVCGate only.
	// +optional
	VolumeClaimUpdateStrategy VolumeClaimUpdateStrategy `json:"volumeClaimUpdateStrategy,omitempty,omitzero"`
	// serviceName is the headless service that gives the pods their DNS names. It is not made here and
	// never changes.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// podManagementPolicy is OrderedReady (the default: one pod after the other, each once those before it
	// are available) or Parallel (all at once). It never changes.
	// +optional
	// +kubebuilder:default=OrderedReady
	// +kubebuilder:validation:XValidation:rule="self in ['OrderedReady', 'Parallel']",message="must be 'OrderedReady' or 'Parallel'"
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`
	// updateStrategy says how pods move to the update revision.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type in ['', 'RollingUpdate', 'OnDelete']",message="must be 'RollingUpdate' or 'OnDelete'"
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`
	// minReadySeconds is where the built-in StatefulSet has this field, without an upper bound. It counts
	// while updateStrategy.rollingUpdate.minReadySeconds is absent or 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// revisionHistoryLimit is the number of unused revisions that are kept. The default is 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// reserveOrdinals are ordinals that get no pod, as numbers or as ranges like "3-7". Others take their
	// place, so that replicas pods run.
	// +optional
	// +listType=atomic
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`
	// lifecycle holds pods in a state until the outside world agrees that they go on.
	// +optional
	Lifecycle *workload.Lifecycle `json:"lifecycle,omitempty"`
	// scaleStrategy says how pods are added.
	// +optional
	ScaleStrategy *StatefulSetScaleStrategy `json:"scaleStrategy,omitempty"`
	// persistentVolumeClaimRetentionPolicy says when claims are deleted. By default they never are.
	// +optional
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`
	// ordinals says where the numbers of the pods begin.
	// +optional
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty"`
}

// VolumeClaimUpdateStrategyType says what a change of volumeClaimTemplates does to existing claims.
type VolumeClaimUpdateStrategyType string

// Values of VolumeClaimUpdateStrategyType. Empty means OnDelete.
const (
	// OnPodRollingUpdate lets claims grow as part of the rolling update, in its order and within its limits.
	OnPodRollingUpdate VolumeClaimUpdateStrategyType = "OnPodRollingUpdate"
	// OnClaimDelete leaves existing claims alone: only those made anew follow the template.
	OnClaimDelete VolumeClaimUpdateStrategyType = "OnDelete"
)

// VolumeClaimUpdateStrategy says what a change of volumeClaimTemplates does to existing claims.
type VolumeClaimUpdateStrategy struct {
	// type is OnDelete (the default) or OnPodRollingUpdate.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'OnPodRollingUpdate', 'OnDelete']",message="must be 'OnPodRollingUpdate' or 'OnDelete'"
	Type VolumeClaimUpdateStrategyType `json:"type,omitempty"`
}

// StatefulSetUpdateStrategy says how pods move to the update revision.
type StatefulSetUpdateStrategy struct {
	// type is RollingUpdate (the default) or OnDelete.
	// +optional
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate is allowed with type RollingUpdate only.
	// +optional
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty"`
}

// PodUpdatePolicy says what an update does to a pod.
type PodUpdatePolicy string

// Values of PodUpdatePolicy. Empty means ReCreate.
const (
	// ReCreate deletes the pod, a new one of the same name takes its place.
	ReCreate PodUpdatePolicy = "ReCreate"
	// InPlaceIfPossible changes the running pod where that is possible and recreates it otherwise.
	InPlaceIfPossible PodUpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnly changes the running pod. Changes of the template that need a new pod are rejected.
	InPlaceOnly PodUpdatePolicy = "InPlaceOnly"
)

// RollingUpdateStatefulSetStrategy says which pods are updated, in which order, how many at a time and how.
type RollingUpdateStatefulSetStrategy struct {
	// partition is the number of pods that stay on the current revision: those of the lowest ordinals,
	// unless unorderedUpdate is set. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Partition *int32 `json:"partition,omitempty"`
	// maxUnavailable is the number of pods that may be unavailable during an update, or their percentage
	// of replicas, rounded down, but at least 1. The default is 1. With OrderedReady it speeds up updates
	// only: pods are created one after the other all the same.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="a valid percent string must be a numeric string followed by an ending '%'"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : self != '0%'",message="should not be less than 1"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// podUpdatePolicy is ReCreate (the default), InPlaceIfPossible or InPlaceOnly. The latter two need
	// readiness gate InPlaceUpdateReady in the template.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'ReCreate', 'InPlaceIfPossible', 'InPlaceOnly']",message="must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'"
	PodUpdatePolicy PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`
	// paused stops updates. Scaling and repair go on.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// unorderedUpdate frees the update from the order of the ordinals. It needs podManagementPolicy Parallel.
	// +optional
	UnorderedUpdate *UnorderedUpdateStrategy `json:"unorderedUpdate,omitempty"`
	// inPlaceUpdateStrategy says how a pod is updated in place.
	// +optional
	InPlaceUpdateStrategy *workload.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
	// minReadySeconds is how long a pod must have been ready to count as available, at most 300. The
	// default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="self <= 300",message="must be no more than 300 seconds"
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// UnorderedUpdateStrategy says which pods go first when the order of ordinals does not count.
type UnorderedUpdateStrategy struct {
	// priorityStrategy says which pods are updated first. Without it the highest ordinals are.
	// +optional
	PriorityStrategy *workload.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
}

// StatefulSetScaleStrategy says how pods are added.
type StatefulSetScaleStrategy struct {
	// maxUnavailable limits how many pods may be unavailable while pods are created, as a number or a
	// percentage of replicas, rounded down, but at least 1. Absent means no limit. It needs
	// podManagementPolicy Parallel.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="a valid percent string must be a numeric string followed by an ending '%'"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : self != '0%'",message="should not be less than 1"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// StatefulSetPersistentVolumeClaimRetentionPolicy says when claims made from volumeClaimTemplates are deleted.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted is Retain (the default) or Delete: what happens to the claims when the set is deleted.
	// +optional
	WhenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`
	// whenScaled is Retain (the default) or Delete: what happens to the claims of an ordinal that is no
	// longer wanted.
	// +optional
	WhenScaled appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// StatefulSetOrdinals says where the numbers of the pods begin.
type StatefulSetOrdinals struct {
	// start is the lowest ordinal. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Start int32 `json:"start"`
}

// StatefulSetStatus says what was seen at observedGeneration.
type StatefulSetStatus struct {
	// observedGeneration is the generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas is the number of pods of the set that exist.
	// +optional
	// +kubebuilder:default=0
	Replicas int32 `json:"replicas"`
	// readyReplicas is the number of pods that run and are ready.
	// +optional
	// +kubebuilder:default=0
	ReadyReplicas int32 `json:"readyReplicas"`
	// availableReplicas is the number of pods that have been ready for minReadySeconds and are held by no hook.
	// +optional
	// +kubebuilder:default=0
	AvailableReplicas int32 `json:"availableReplicas"`
	// currentReplicas is the number of pods of the current revision that are not being deleted.
	// +optional
	// +kubebuilder:default=0
	CurrentReplicas int32 `json:"currentReplicas"`
	// updatedReplicas is the number of pods of the update revision that are not being deleted.
	// +optional
	// +kubebuilder:default=0
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// updatedReadyReplicas is the number of ready pods of the update revision.
	// +optional
	// +kubebuilder:default=0
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`
	// updatedAvailableReplicas is the number of available pods of the update revision.
	// +optional
	// +kubebuilder:default=0
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas"`
	// currentRevision is the name of the revision that pods kept back by partition are of.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// updateRevision is the name of the revision that the template stands for.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// collisionCount keeps names of revisions apart whose hashes are equal by accident.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// conditions are at most one of each type.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []workload.Condition `json:"conditions,omitempty"`
	// labelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// volumeClaims says for each claim template how far the claims follow it, in the order of the templates.
	// +optional
	// +listType=atomic
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`
}

// VolumeClaimStatus says how far the claims made from one template follow it.
type VolumeClaimStatus struct {
	// volumeClaimName is the name of the template.
	// +optional
	VolumeClaimName string `json:"volumeClaimName"`
	// compatibleReplicas is the number of pods whose claim asks for what the template says.
	// +optional
	CompatibleReplicas int32 `json:"compatibleReplicas"`
	// compatibleReadyReplicas is the number of those whose claim also has that size.
	// +optional
	CompatibleReadyReplicas int32 `json:"compatibleReadyReplicas"`
}
