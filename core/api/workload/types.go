package workload

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Lifecycle holds a pod in a state until the outside world agrees that it goes on.
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

// LifecycleHook names the labels and finalizers whose presence on a pod holds it.
type LifecycleHook struct {
	// labelsHandler: a pod with one of these labels and values is hooked.
	// +optional
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`
	// finalizersHandler: a pod with one of these finalizers is hooked.
	// +optional
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`
	// markPodNotReady takes the pod out of service while the hook holds it. It has no effect on preNormal.
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}

// InPlaceUpdateStrategy says how a pod is updated in place.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is the time between the pod's leaving service and the change of its spec.
	// +optional
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`
	// imagePreDownloadParallelism is the number of nodes that pull a new image ahead of the update at a time.
	// +optional
	ImagePreDownloadParallelism *intstr.IntOrString `json:"imagePreDownloadParallelism,omitempty"`
	// imagePreDownloadTimeoutSeconds bounds one such pull.
	// +optional
	ImagePreDownloadTimeoutSeconds *int32 `json:"imagePreDownloadTimeoutSeconds,omitempty"`
	// imagePreDownloadMinUpdatedReadyPods is the number of updated and ready pods from which on images are pulled ahead.
	// +optional
	ImagePreDownloadMinUpdatedReadyPods *int32 `json:"imagePreDownloadMinUpdatedReadyPods,omitempty"`
}

// UpdatePriorityStrategy orders the pods of an update. At most one of its lists is set.
type UpdatePriorityStrategy struct {
	// orderPriority: pods with an earlier key first, among them the larger trailing number of the label's value.
	// +optional
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`
	// weightPriority: pods with the larger sum of matching weights first.
	// +optional
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm names a label whose value orders pods.
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
