package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/api/workload"
)

// CloneSet keeps a number of interchangeable pods with random names running, and updates them in
// place where that is possible.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:shortName=clone
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type="integer",JSONPath=".spec.replicas",description="The number of pods wanted."
// +kubebuilder:printcolumn:name="UPDATED",type="integer",JSONPath=".status.updatedReplicas",description="The number of pods of the update revision."
// +kubebuilder:printcolumn:name="UPDATED_READY",type="integer",JSONPath=".status.updatedReadyReplicas",description="The number of ready pods of the update revision."
// +kubebuilder:printcolumn:name="UPDATED_AVAILABLE",type="integer",JSONPath=".status.updatedAvailableReplicas",description="The number of available pods of the update revision."
// +kubebuilder:printcolumn:name="READY",type="integer",JSONPath=".status.readyReplicas",description="The number of ready pods."
// +kubebuilder:printcolumn:name="TOTAL",type="integer",JSONPath=".status.replicas",description="The number of active pods."
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the CloneSet was created."
// +kubebuilder:printcolumn:name="CONTAINERS",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].name",description="The names of the template's containers."
// +kubebuilder:printcolumn:name="IMAGES",type="string",priority=1,JSONPath=".spec.template.spec.containers[*].image",description="The images of the template's containers."
// +kubebuilder:printcolumn:name="SELECTOR",type="string",priority=1,JSONPath=".status.labelSelector",description="The selector of the pods."
type CloneSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which pods are wanted and how they change.
	// +optional
	Spec CloneSetSpec `json:"spec,omitempty"`
	// status says what was seen at observedGeneration.
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

// CloneSetSpec says which pods are wanted and how they change.
type CloneSetSpec struct {
	// replicas is the number of pods wanted. The default is 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	Replicas *int32 `json:"replicas,omitempty"`
	// selector selects the pods of the set. It must match the template's labels and never changes.
	Selector *metav1.LabelSelector `json:"selector"`
	// template is what new pods are made from. Changing it makes a new revision.
	Template corev1.PodTemplateSpec `json:"template"`
	// volumeClaimTemplates: each pod gets a claim from each of them and may mount it by its name.
	// +optional
	// +listType=atomic
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// scaleStrategy says how pods are added and taken away.
	// +optional
	ScaleStrategy CloneSetScaleStrategy `json:"scaleStrategy,omitempty,omitzero"`
	// updateStrategy says how pods move to the update revision.
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
	// lifecycle holds pods in a state until the outside world agrees that they go on.
	// +optional
	Lifecycle *workload.Lifecycle `json:"lifecycle,omitempty"`
	// progressDeadlineSeconds: a rollout that makes no progress for that long is reported by the
	// Progressing condition. It stops nothing. Absent or 2147483647 means no deadline.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="must be greater than or equal to 0"
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// CloneSetScaleStrategy says how pods are added and taken away.
type CloneSetScaleStrategy struct {
	// podsToDelete names pods that go. The controller takes names off once their pods are gone.
	// +optional
	// +listType=atomic
	PodsToDelete []string `json:"podsToDelete,omitempty"`
	// maxUnavailable limits how many pods may be unavailable while pods are created, as a number or a
	// percentage of replicas, rounded up. Absent means no limit.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.endsWith('%')",message="failed GetScaledValueFromIntOrPercent for maxUnavailable: invalid type: string is not a percentage"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="must be greater than or equal to 0"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// enablePVCReuse gives the claims of a deleted pod to the pod that takes its place. Otherwise they
	// are deleted with the pod.
	// +optional
	// +kubebuilder:default=false
	EnablePVCReuse bool `json:"enablePVCReuse,omitempty"`
	// excludePreparingDelete leaves pods in PreparingDelete out of the count of replicas.
	// +optional
	ExcludePreparingDelete bool `json:"excludePreparingDelete,omitempty"`
}

// CloneSetUpdateStrategyType says who decides when a pod is updated.
type CloneSetUpdateStrategyType string

// Values of CloneSetUpdateStrategyType. Empty means RollingUpdate.
const (
	// RollingUpdate updates pods as rollingUpdate says.
	RollingUpdate CloneSetUpdateStrategyType = "RollingUpdate"
	// OnDelete updates no pod: those that replace deleted ones are of the update revision.
	OnDelete CloneSetUpdateStrategyType = "OnDelete"
)

// CloneSetUpdateStrategy says how pods move to the update revision.
type CloneSetUpdateStrategy struct {
	// type is RollingUpdate (the default) or OnDelete.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'RollingUpdate', 'OnDelete']",message="must be 'RollingUpdate' or 'OnDelete'"
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`
	// rollingUpdate has an effect with type RollingUpdate only.
	// +optional
	RollingUpdate *RollingUpdateCloneSetStrategy `json:"rollingUpdate,omitempty"`
}

// PodUpdatePolicy says what an update does to a pod.
type PodUpdatePolicy string

// Values of PodUpdatePolicy. Empty means ReCreate.
const (
	// ReCreate deletes the pod, a new one takes its place.
	ReCreate PodUpdatePolicy = "ReCreate"
	// InPlaceIfPossible changes the running pod where that is possible and recreates it otherwise.
	InPlaceIfPossible PodUpdatePolicy = "InPlaceIfPossible"
	// InPlaceOnly changes the running pod. Changes of the template that need a new pod are rejected.
	InPlaceOnly PodUpdatePolicy = "InPlaceOnly"
)

// RollingUpdateCloneSetStrategy says which pods are updated, in which order, how many at a time and how.
type RollingUpdateCloneSetStrategy struct {
	// podUpdatePolicy is ReCreate (the default), InPlaceIfPossible or InPlaceOnly.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self in ['', 'ReCreate', 'InPlaceIfPossible', 'InPlaceOnly']",message="must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'"
	PodUpdatePolicy PodUpdatePolicy `json:"podUpdatePolicy,omitempty"`
	// partition is the number of pods, or their percentage of replicas rounded up, that stay on the
	// current revision. A percentage other than 100% leaves at least one pod to update. The default is 0.
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
	// paused stops updates. Scaling goes on.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// priorityStrategy says which pods are updated first.
	// +optional
	PriorityStrategy *workload.UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
	// scatterStrategy spreads pods with the given labels evenly over the update.
	// +optional
	ScatterStrategy workload.UpdateScatterStrategy `json:"scatterStrategy,omitempty"`
	// inPlaceUpdateStrategy says how a pod is updated in place.
	// +optional
	InPlaceUpdateStrategy *workload.InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// CloneSetStatus says what was seen at observedGeneration.
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
	// availableReplicas is the number of pods that have been ready for minReadySeconds and are held by no hook.
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
	// expectedUpdatedReplicas is the number of pods that partition asks to be of the update revision.
	// +optional
	// +kubebuilder:default=0
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas"`
	// updateRevision is the name of the revision that the template stands for.
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`
	// currentRevision is the name of the revision that all pods were last of.
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`
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
}
