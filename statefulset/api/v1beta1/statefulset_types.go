package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

// StatefulSet runs a number of pods with stable names, PVCs and order. It updates several pods at a time, in place if
// possible.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=sts;asts
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The desired number of pods."
// +kubebuilder:printcolumn:name="CURRENT",type="integer",JSONPath=".status.replicas",description="The number of pods that exist."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods of the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of ready pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the StatefulSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The names of the template's containers."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template's containers."
// +kubebuilder:printcolumn:name="REVISION",type="string",priority=1,JSONPath=".status.updateRevision",description="The update revision."
// +kubebuilder:printcolumn:name="REASON",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="The reason of condition Ready."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="The message of condition Ready."
type StatefulSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines the pods and their updates.
	// +optional
	Spec StatefulSetSpec `json:"spec,omitempty"`
	// status is the state that the controller last observed.
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

// StatefulSetSpec defines the pods and their updates.
type StatefulSetSpec struct {
	// replicas is the desired number of pods. The default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Replicas *int32 `json:"replicas,omitempty"`
	// selector selects the pods of the set. It must match the template's labels, and is immutable.
	Selector *metav1.LabelSelector `json:"selector"`
	// template is the template of new pods. A change of it creates a new revision.
	Template corev1.PodTemplateSpec `json:"template"`
	// volumeClaimTemplates are templates of PVCs. Each ordinal gets one PVC from each template and keeps it when its pod is
	// replaced. The pod mounts it by the name of the template.
	// +optional
	// +listType=atomic
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// volumeClaimUpdateStrategy defines how existing PVCs follow a change of volumeClaimTemplates. It needs feature gate
	// StatefulSetAutoResizePVCGate.
	// +optional
	VolumeClaimUpdateStrategy VolumeClaimUpdateStrategy `json:"volumeClaimUpdateStrategy,omitempty,omitzero"`
	// serviceName is the name of the headless service that gives the pods their DNS names. The controller does not
	// create it. It is immutable.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// podManagementPolicy is OrderedReady or Parallel. With OrderedReady, the default, a pod is created when all pods of
	// lower ordinals are available. With Parallel, all pods are created at once. It is immutable.
	// +optional
	// +kubebuilder:default=OrderedReady
	// +kubebuilder:validation:XValidation:rule="self in ['OrderedReady', 'Parallel']",message="must be 'OrderedReady' or 'Parallel'"
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`
	// updateStrategy defines how pods are updated.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type in ['', 'RollingUpdate', 'OnDelete']",message="must be 'RollingUpdate' or 'OnDelete'"
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Recreate'",message="Recreate is for built-in StatefulSets only: scale to 0, change the template, and scale up"
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`
	// minReadySeconds is the field of the built-in StatefulSet, without an upper bound. It is used if
	// updateStrategy.rollingUpdate.minReadySeconds is absent or 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// revisionHistoryLimit is the number of unused revisions that are kept. The default is 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// reserveOrdinals are ordinals without a pod, as numbers or as ranges like "3-7". Higher ordinals get pods instead, so
	// that the number of pods is still replicas.
	// +optional
	// +listType=atomic
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`
	// lifecycle has hooks that hold a pod before it is deleted, updated in place or counted as available. The pod continues
	// when another controller or a user removes the label or finalizer of the hook.
	// +optional
	Lifecycle *workload.Lifecycle `json:"lifecycle,omitempty"`
	// scaleStrategy limits how many pods are created at a time.
	// +optional
	ScaleStrategy *StatefulSetScaleStrategy `json:"scaleStrategy,omitempty"`
	// persistentVolumeClaimRetentionPolicy defines when PVCs are deleted. By default they are kept.
	// +optional
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`
	// ordinals sets the lowest ordinal.
	// +optional
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty"`
}

// VolumeClaimUpdateStrategyType defines how existing PVCs follow a change of volumeClaimTemplates.
type VolumeClaimUpdateStrategyType string

// Values of VolumeClaimUpdateStrategyType. Empty means OnDelete.
const (
	// OnPodRollingUpdate resizes PVCs during the rolling update, in its order and within its limits.
	OnPodRollingUpdate VolumeClaimUpdateStrategyType = "OnPodRollingUpdate"
	// OnClaimDelete keeps existing PVCs as they are. Only new PVCs follow the template.
	OnClaimDelete VolumeClaimUpdateStrategyType = "OnDelete"
)

// VolumeClaimUpdateStrategy defines how existing PVCs follow a change of volumeClaimTemplates.
type VolumeClaimUpdateStrategy struct {
	// type is OnDelete (the default) or OnPodRollingUpdate.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'OnPodRollingUpdate', 'OnDelete']",message="must be 'OnPodRollingUpdate' or 'OnDelete'"
	Type VolumeClaimUpdateStrategyType `json:"type,omitempty"`
}

// StatefulSetUpdateStrategy defines how pods are updated.
type StatefulSetUpdateStrategy struct {
	// type is RollingUpdate (the default) or OnDelete.
	// +optional
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate has the settings of type RollingUpdate. With other types it must be absent.
	// +optional
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty"`
}

// PodUpdatePolicy defines how an update changes a pod.
type PodUpdatePolicy string

// Values of PodUpdatePolicy. Empty means ReCreate.
const (
	// ReCreate deletes the pod and creates a new one of the same name.
	ReCreate PodUpdatePolicy = "ReCreate"
	// InPlaceIfPossible updates the running pod if possible, and recreates it otherwise.
	InPlaceIfPossible PodUpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnly updates the running pod. Changes of the template that need a new pod are rejected.
	InPlaceOnly PodUpdatePolicy = "InPlaceOnly"
)

// RollingUpdateStatefulSetStrategy defines which pods are updated, in which order, how many at a time and how.
type RollingUpdateStatefulSetStrategy struct {
	// partition is the number of pods that stay on the current revision: the pods with the lowest ordinals, unless
	// unorderedUpdate is set. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Partition *int32 `json:"partition,omitempty"`
	// maxUnavailable is the number of pods that may be unavailable during an update, or a percentage of replicas, rounded
	// down, but at least 1. The default is 1. With OrderedReady it applies to updates only: pods are still created one
	// after the other.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="a valid percent string must be a numeric string followed by an ending '%'"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : self != '0%'",message="should not be less than 1"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// podUpdatePolicy is ReCreate (the default), InPlaceIfPossible or InPlaceOnly. InPlaceIfPossible and InPlaceOnly need
	// readiness gate InPlaceUpdateReady in the template.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'ReCreate', 'InPlaceIfPossible', 'InPlaceOnly']",message="must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'"
	PodUpdatePolicy PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`
	// paused stops updates. Scaling and the replacement of failed pods continue.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// unorderedUpdate updates pods in another order than by ordinal. It needs podManagementPolicy Parallel.
	// +optional
	UnorderedUpdate *UnorderedUpdateStrategy `json:"unorderedUpdate,omitempty"`
	// inPlaceUpdateStrategy has the settings of updates in place.
	// +optional
	InPlaceUpdateStrategy *workload.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
	// minReadySeconds is the time that a pod must have been ready to count as available, at most 300. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="self <= 300",message="must be no more than 300 seconds"
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// UnorderedUpdateStrategy orders the pods of an update by priority instead of by ordinal.
type UnorderedUpdateStrategy struct {
	// priorityStrategy selects the pods that are updated first. The default is the pods with the highest ordinals.
	// +optional
	PriorityStrategy *workload.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
}

// StatefulSetScaleStrategy limits how many pods are created at a time.
type StatefulSetScaleStrategy struct {
	// maxUnavailable is the number of pods that may be unavailable while pods are created, or a percentage of replicas,
	// rounded down, but at least 1. Absent means unlimited. It needs podManagementPolicy Parallel.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="a valid percent string must be a numeric string followed by an ending '%'"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self != 0 : self != '0%'",message="should not be less than 1"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// StatefulSetPersistentVolumeClaimRetentionPolicy defines when PVCs made from volumeClaimTemplates are deleted.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted is Retain (the default) or Delete. Delete deletes all PVCs when the StatefulSet is deleted.
	// +optional
	WhenDeleted appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`
	// whenScaled is Retain (the default) or Delete. Delete deletes the PVCs of an ordinal that is scaled in or reserved.
	// +optional
	WhenScaled appsv1.PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// StatefulSetOrdinals sets the lowest ordinal.
type StatefulSetOrdinals struct {
	// start is the lowest ordinal. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Start int32 `json:"start"`
}

// StatefulSetStatus is the state that the controller last observed.
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
	// availableReplicas is the number of pods that have been ready for minReadySeconds and that no lifecycle hook
	// holds.
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
	// currentRevision is the name of the revision of pods that have yet to be updated.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
	// updateRevision is the name of the revision of the current template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// collisionCount is how often the name of a new revision was taken. The hash in the next name depends on it.
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`
	// conditions are the latest observations of the state, at most one of each type.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []workload.Condition `json:"conditions,omitempty"`
	// labelSelector is the selector as a string, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// volumeClaims has the number of PVCs that match each of volumeClaimTemplates, in the same order.
	// +optional
	// +listType=atomic
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`
}

// VolumeClaimStatus counts the PVCs that match a template.
type VolumeClaimStatus struct {
	// volumeClaimName is the name of the template.
	// +optional
	VolumeClaimName string `json:"volumeClaimName"`
	// compatibleReplicas is the number of pods with a PVC that requests at least the size in the template, with its storage
	// class and access modes.
	// +optional
	CompatibleReplicas int32 `json:"compatibleReplicas"`
	// compatibleReadyReplicas is the number of these PVCs with a volume of the requested size.
	// +optional
	CompatibleReadyReplicas int32 `json:"compatibleReadyReplicas"`
}
