package v1alpha1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// StatefulSet runs a number of pods with stable names, PVCs and order. It updates several pods at a time, in place if
// possible.
// +kubebuilder:object:root=true
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
	UpdateStrategy v1beta1.StatefulSetUpdateStrategy `json:"updateStrategy,omitempty,omitzero"`
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
}
