package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

// CloneSet runs a number of interchangeable pods with random names, and updates them in place if possible.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=clone
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The desired number of pods."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods of the update revision."
// +kubebuilder:printcolumn:name="UPDATED_READY",type="integer",JSONPath=".status.updatedReadyReplicas",description="The number of ready pods of the update revision."
// +kubebuilder:printcolumn:name="UPDATED_AVAILABLE",type="integer",JSONPath=".status.updatedAvailableReplicas",description="The number of available pods of the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of ready pods."
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.replicas",description="The number of active pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the CloneSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The names of the template's containers."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template's containers."
// +kubebuilder:printcolumn:name="SELECTOR",type="string",priority=1,JSONPath=".status.labelSelector",description="The selector of the pods."
// +kubebuilder:printcolumn:name="REVISION",type="string",priority=1,JSONPath=".status.updateRevision",description="The update revision."
// +kubebuilder:printcolumn:name="REASON",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="The reason of condition Ready."
// +kubebuilder:printcolumn:name="MESSAGE",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="The message of condition Ready."
type CloneSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the set.
	// +optional
	Spec CloneSetSpec `json:"spec,omitempty"`
	// status is the state that the controller last observed.
	// +optional
	Status CloneSetStatus `json:"status,omitempty,omitzero"`
}

// CloneSetList is a list of CloneSets.
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the CloneSets.
	Items []CloneSet `json:"items"`
}

// CloneSetSpec is the desired state of a CloneSet.
type CloneSetSpec struct {
	// replicas is the desired number of pods. The default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Replicas *int32 `json:"replicas,omitempty"`
	// selector selects the pods of the set. It must match the template's labels, and is immutable.
	Selector *metav1.LabelSelector `json:"selector"`
	// template is the template of new pods. A change of it creates a new revision.
	Template corev1.PodTemplateSpec `json:"template"`
	// volumeClaimTemplates are templates of PVCs. Each pod gets a PVC from each of them, and can mount it by the
	// template's name.
	// +optional
	// +listType=atomic
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// scaleStrategy controls how pods are created and deleted.
	// +optional
	// +kubebuilder:default={}
	ScaleStrategy CloneSetScaleStrategy `json:"scaleStrategy,omitempty,omitzero"`
	// updateStrategy controls how pods are updated.
	// +optional
	UpdateStrategy CloneSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`
	// revisionHistoryLimit is the number of unused revisions that are kept. The default is 10.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
	// minReadySeconds is how long a pod must have been ready to count as available.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
	// lifecycle has the hooks that hold a pod before it is deleted, updated in place or counted as available, until
	// another controller or a user releases it.
	// +optional
	Lifecycle *workload.Lifecycle `json:"lifecycle,omitempty"`
	// progressDeadlineSeconds is how long a rollout may make no progress before condition Progressing reports it. The
	// rollout continues. Absent or 2147483647 means no deadline.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// CloneSetScaleStrategy controls how pods are created and deleted.
type CloneSetScaleStrategy struct {
	// podsToDelete are the names of pods to delete. The controller removes a name when its pod is gone.
	// +optional
	// +listType=atomic
	PodsToDelete []string `json:"podsToDelete,omitempty"`
	// maxUnavailable limits how many pods may be unavailable while pods are created, as a number or a
	// percentage of replicas, rounded up. Absent means no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="failed GetScaledValueFromIntOrPercent for maxUnavailable: invalid type: string is not a percentage"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// disablePVCReuse deletes the PVCs of a deleted pod with it. Otherwise the pod that replaces it gets them.
	// +optional
	// +kubebuilder:default=false
	DisablePVCReuse bool `json:"disablePVCReuse,omitempty"`
}

// CloneSetUpdateStrategyType selects how an update changes a pod.
type CloneSetUpdateStrategyType string

// Values of CloneSetUpdateStrategyType. Empty means ReCreate.
const (
	// ReCreate deletes the pod and creates a new one.
	ReCreate CloneSetUpdateStrategyType = "ReCreate"
	// InPlaceIfPossible updates the running pod if possible, and recreates it otherwise.
	InPlaceIfPossible CloneSetUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnly updates the running pod. Changes of the template that need a new pod are rejected.
	InPlaceOnly CloneSetUpdateStrategyType = "InPlaceOnly"
	// OnDelete updates no pods. Pods that replace deleted ones get the update revision.
	OnDelete CloneSetUpdateStrategyType = "OnDelete"
)

// CloneSetUpdateStrategy controls which pods are updated, in which order, how many at a time and how.
type CloneSetUpdateStrategy struct {
	// type is ReCreate (the default), InPlaceIfPossible, InPlaceOnly or OnDelete.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'ReCreate', 'InPlaceIfPossible', 'InPlaceOnly', 'OnDelete']",message="must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly' (or 'OnDelete')"
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`
	// partition is the number of pods, or their percentage of replicas rounded up, that stay at the current revision.
	// With a percentage other than 100% at least one pod is updated. The default is 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="failed GetScaledValueFromIntOrPercent for partition: invalid type: string is not a percentage"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	Partition *intstr.IntOrString `json:"partition,omitempty"`
	// maxUnavailable is the number of pods that may be unavailable during an update, or their percentage
	// of replicas, rounded up without maxSurge and down with it. The default is 20%.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="failed GetScaledValueFromIntOrPercent for maxUnavailable: invalid type: string is not a percentage"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxSurge is the number of pods that may exist beyond replicas during an update, or their
	// percentage of replicas, rounded up. The default is 0. It must be 0 with InPlaceOnly.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="failed GetScaledValueFromIntOrPercent for maxSurge: invalid type: string is not a percentage"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
	// paused stops updates. Scaling continues.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// priorityStrategy controls which pods are updated first.
	// +optional
	PriorityStrategy *workload.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
	// scatterStrategy spreads pods with the given labels evenly over the update.
	// +optional
	ScatterStrategy workload.UpdateScatterStrategy `json:"scatterStrategy,omitempty"`
	// inPlaceUpdateStrategy controls how a pod is updated in place. In this version the imagePreDownload fields have no
	// effect; annotations on the CloneSet set the same.
	// +optional
	InPlaceUpdateStrategy *workload.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// CloneSetStatus is the state of a set that the controller last observed.
type CloneSetStatus struct {
	// observedGeneration is the generation of the spec that this status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas is the number of active pods.
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
	// updatedReplicas is the number of active pods of the update revision.
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
	// expectedUpdatedReplicas is the number of pods to update: replicas less those that partition keeps.
	// +optional
	// +kubebuilder:default=0
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas"`
	// updateRevision is the name of the revision of the current template.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// currentRevision is the name of the last revision that all pods had.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
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
}
