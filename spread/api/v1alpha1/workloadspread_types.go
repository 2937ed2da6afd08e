package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WorkloadSpread distributes the pods of one workload over subsets, such as zones or kinds of nodes, without changing
// the workload.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=ws
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="WorkloadName",type="string",JSONPath=".spec.targetRef.name",description="The name of the workload."
// +kubebuilder:printcolumn:name="WorkloadKind",type="string",JSONPath=".spec.targetRef.kind",description="The kind of the workload."
// +kubebuilder:printcolumn:name="Adaptive",type="boolean",JSONPath=".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]",description="Whether pods that cannot be scheduled move to later subsets."
// +kubebuilder:printcolumn:name="Subsets",type="string",JSONPath=".status.distribution",description="The pods of each subset and, after a slash, its limit."
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The time since the WorkloadSpread was created."
// +kubebuilder:printcolumn:name="Reason",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"AllPlaced\")].reason",description="The reason of condition AllPlaced."
// +kubebuilder:printcolumn:name="Message",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"AllPlaced\")].message",description="The message of condition AllPlaced."
type WorkloadSpread struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the workload and its subsets.
	// +optional
	Spec WorkloadSpreadSpec `json:"spec,omitempty"`
	// status has the numbers of pods in each subset.
	// +optional
	Status WorkloadSpreadStatus `json:"status,omitempty,omitzero"`
}

// WorkloadSpreadList is a list of WorkloadSpreads.
// +kubebuilder:object:root=true
type WorkloadSpreadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the WorkloadSpreads.
	Items []WorkloadSpread `json:"items"`
}

// WorkloadSpreadSpec has the workload and its subsets.
type WorkloadSpreadSpec struct {
	// targetRef names the workload, in the same namespace. Its group, kind and name are immutable.
	TargetReference *TargetReference `json:"targetRef"`
	// targetFilter restricts the WorkloadSpread to a part of the workload's pods.
	// +optional
	TargetFilter *TargetFilter `json:"targetFilter,omitempty"`
	// subsets are in order of preference: new pods go to the first one with room, and pods of the last one are the first
	// to go.
	Subsets []WorkloadSpreadSubset `json:"subsets"`
	// scheduleStrategy selects how pods that are unschedulable in their subset are handled.
	// +optional
	ScheduleStrategy WorkloadSpreadScheduleStrategy `json:"scheduleStrategy,omitempty,omitzero"`
}

// TargetReference names a workload.
type TargetReference struct {
	// apiVersion of the workload, such as apps/v1. Any version of the group means the same workload.
	APIVersion string `json:"apiVersion"`
	// kind of the workload.
	Kind string `json:"kind"`
	// name of the workload.
	Name string `json:"name"`
}

// TargetFilter restricts a WorkloadSpread to a part of a workload's pods.
type TargetFilter struct {
	// selector matches the pods that count. The default is all pods.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// replicasPathList are paths of integers in the workload, such as spec.groups.1.replicas. Their sum is the number of
	// desired pods.
	// +optional
	ReplicasPathList []string `json:"replicasPathList,omitempty"`
}

// ScheduleStrategyType selects how unschedulable pods are handled. The default is Fixed.
// +kubebuilder:validation:Enum=Adaptive;Fixed;""
type ScheduleStrategyType string

// The strategies. Absent means Fixed.
const (
	// FixedStrategy leaves the pods in their subset.
	FixedStrategy ScheduleStrategyType = "Fixed"
	// AdaptiveStrategy deletes unschedulable pods, so that their replacements go to a later subset.
	AdaptiveStrategy ScheduleStrategyType = "Adaptive"
)

// WorkloadSpreadScheduleStrategy selects how unschedulable pods are handled.
type WorkloadSpreadScheduleStrategy struct {
	// type of the strategy.
	// +optional
	Type ScheduleStrategyType `json:"type,omitempty"`
	// adaptive has the settings of type Adaptive.
	// +optional
	Adaptive *AdaptiveSettings `json:"adaptive,omitempty"`
}

// AdaptiveSettings are the settings of strategy Adaptive.
type AdaptiveSettings struct {
	// disableSimulationSchedule is ignored.
	// +optional
	DisableSimulationSchedule bool `json:"disableSimulationSchedule,omitempty"`
	// rescheduleCriticalSeconds is how long a pod may be unschedulable before it is deleted. With 0, the default, pods stay.
	// +optional
	RescheduleCriticalSeconds *int32 `json:"rescheduleCriticalSeconds,omitempty"`
}

// WorkloadSpreadSubset is a part of the cluster, with the scheduling rules of its pods.
type WorkloadSpreadSubset struct {
	// name identifies the subset in the list.
	Name string `json:"name"`
	// requiredNodeSelectorTerm is added to each term of the pod's required node affinity.
	// +optional
	RequiredNodeSelectorTerm *corev1.NodeSelectorTerm `json:"requiredNodeSelectorTerm,omitempty"`
	// preferredNodeSelectorTerms are added to the pod's preferred node affinity.
	// +optional
	PreferredNodeSelectorTerms []corev1.PreferredSchedulingTerm `json:"preferredNodeSelectorTerms,omitempty"`
	// tolerations are added to the pod's.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// maxReplicas is how many pods the subset has at most: a number, or a percentage of the workload's replicas, rounded
	// up. Absent means any number.
	// +optional
	MaxReplicas *intstr.IntOrString `json:"maxReplicas,omitempty"`
	// patch is a strategic merge patch for the pod.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Patch runtime.RawExtension `json:"patch,omitempty,omitzero"`
}

// WorkloadSpreadStatus has the numbers of pods in each subset.
type WorkloadSpreadStatus struct {
	// observedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// subsetStatuses are the totals of all revisions of the workload, in the order of spec.subsets.
	// +optional
	SubsetStatuses []SubsetStatus `json:"subsetStatuses,omitempty"`
	// distribution is a summary of subsetStatuses in one line: the pods of each subset and, after a slash, its limit.
	// +optional
	Distribution string `json:"distribution,omitempty"`
	// versionedSubsetStatuses are the same numbers for each revision. maxReplicas applies to each revision separately, so
	// that a rollout can create new pods before it deletes old ones.
	// +optional
	VersionedSubsetStatuses map[string][]SubsetStatus `json:"versionedSubsetStatuses,omitempty"`
	// conditions report problems of the WorkloadSpread.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []SubsetCondition `json:"conditions,omitempty"`
}

// SubsetStatus has the numbers of pods in a subset.
type SubsetStatus struct {
	// name of the subset.
	Name string `json:"name"`
	// replicas is the number of pods in the subset without finished and terminating pods.
	Replicas int32 `json:"replicas"`
	// missingReplicas is how many more pods the subset can have, and -1 without a limit.
	MissingReplicas int32 `json:"missingReplicas"`
	// creatingPods lists admitted pods that are not yet counted in replicas, with the admission time. The key is the name
	// of the pod or, if the API server generates the name, the uid in its annotation.
	// +optional
	CreatingPods map[string]metav1.Time `json:"creatingPods,omitempty"`
	// deletingPods lists pods with an admitted deletion that are still counted in replicas, by name, with the admission
	// time.
	// +optional
	DeletingPods map[string]metav1.Time `json:"deletingPods,omitempty"`
	// conditions report whether pods can be scheduled.
	// +optional
	Conditions []SubsetCondition `json:"conditions,omitempty"`
}

// SubsetCondition is a condition of a subset or of the WorkloadSpread.
type SubsetCondition struct {
	// type of the condition.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// lastTransitionTime is when the status changed last.
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
	// reason is one word for machines.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is a sentence for people.
	// +optional
	Message string `json:"message,omitempty"`
	// observedGeneration is the generation of the WorkloadSpread that the condition is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
