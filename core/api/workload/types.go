package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Lifecycle has the hooks that hold a pod before it is deleted, updated in place or counted as available, until another
// controller or a user releases it.
type Lifecycle struct {
	// preDelete holds a pod that the workload wants to delete.
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`
	// inPlaceUpdate holds a pod before and after its update in place.
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`
	// preNormal holds a new pod before it counts as available.
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`
}

// LifecycleHook has the labels and finalizers that hold a pod while it has them.
type LifecycleHook struct {
	// labelsHandler are labels with their values. A pod that has one of them is held.
	// +optional
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`
	// finalizersHandler are finalizers. A pod that has one of them is held.
	// +optional
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`
	// markPodNotReady makes the pod not ready while the hook holds it. Hook preNormal ignores it.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}

// InPlaceUpdateStrategy controls how a pod is updated in place.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is the time between making the pod not ready and changing its spec.
	// +optional
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
	// imagePreDownloadParallelism is the number of nodes that pull a new image at a time, before their pods are
	// updated.
	// +optional
	ImagePreDownloadParallelism *intstr.IntOrString `json:"imagePreDownloadParallelism,omitempty"`
	// imagePreDownloadTimeoutSeconds limits one such pull.
	// +optional
	ImagePreDownloadTimeoutSeconds *int32 `json:"imagePreDownloadTimeoutSeconds,omitempty"`
	// imagePreDownloadMinUpdatedReadyPods is how many updated pods must be ready before images are pulled on the other nodes.
	// +optional
	ImagePreDownloadMinUpdatedReadyPods *int32 `json:"imagePreDownloadMinUpdatedReadyPods,omitempty"`
	// resizeDeadlineSeconds is how long a pod waits for cpu and memory that its node puts off or can never give. Then it
	// is recreated, as maxUnavailable allows. Absent means that it waits forever. Policy InPlaceOnly never recreates.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ResizeDeadlineSeconds *int32 `json:"resizeDeadlineSeconds,omitempty"`
}

// UpdatePriorityStrategy orders the pods of an update. At most one of its lists is set.
type UpdatePriorityStrategy struct {
	// orderPriority updates pods with an earlier key in this list first. Among pods with the same
	// key, the pod with the larger number at the end of the label value is first.
	// +optional
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`
	// weightPriority updates pods with a larger sum of weights first.
	// +optional
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm names a label. Its values order the pods.
type UpdatePriorityOrderTerm struct {
	// orderedKey is the label's key.
	OrderedKey string `json:"orderedKey"`
}

// UpdatePriorityWeightTerm gives a weight to pods.
type UpdatePriorityWeightTerm struct {
	// weight is between 0 and 100.
	Weight int32 `json:"weight"`
	// matchSelector selects the pods that get the weight.
	MatchSelector metav1.LabelSelector `json:"matchSelector"`
}

// UpdateScatterStrategy spreads pods with given labels evenly over an update.
// +listType=atomic
type UpdateScatterStrategy []UpdateScatterTerm

// UpdateScatterTerm names a label and its value.
type UpdateScatterTerm struct {
	// key of the label.
	Key string `json:"key"`
	// value of the label.
	Value string `json:"value"`
}
