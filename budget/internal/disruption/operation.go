package disruption

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/pods/podspec"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
)

// OfUpdate returns which operation an update of a pod is, empty for one that disrupts nothing: metadata, tolerations,
// images of containers that have ended. The first label that marks the pod as unavailable is a disruption.
func OfUpdate(before, after *corev1.Pod) v1beta1.PubOperation {
	switch {
	case !HasUnavailableLabel(before) && HasUnavailableLabel(after),
		imagesDiffer(before, after),
		isShortened(before.Spec.ActiveDeadlineSeconds, after.Spec.ActiveDeadlineSeconds):
		return v1beta1.UpdateOperation
	}
	return OfResize(before, after)
}

// OfResize returns which operation a change of resources is, including the resources of the pod as a whole: RESIZE if all
// containers keep running, UPDATE if one restarts, empty if nothing changes.
func OfResize(before, after *corev1.Pod) v1beta1.PubOperation {
	var op v1beta1.PubOperation
	var none corev1.ResourceRequirements
	shared := changedResources(ptr.Deref(before.Spec.Resources, none), ptr.Deref(after.Spec.Resources, none))
	containers := podspec.LongRunning(&after.Spec)
	for _, was := range podspec.LongRunning(&before.Spec) {
		i := slices.IndexFunc(containers, func(c *corev1.Container) bool { return c.Name == was.Name })
		if i < 0 {
			return v1beta1.UpdateOperation
		}
		for _, name := range append(changedResources(was.Resources, containers[i].Resources), shared...) {
			if restartsFor(was, name) {
				return v1beta1.UpdateOperation
			}
			op = v1beta1.ResizeOperation
		}
	}
	return op
}

// OfStatus returns UPDATE for the change of a pod's status by which an operator takes it out of service, and otherwise
// nothing.
func OfStatus(before, after *corev1.Pod) v1beta1.PubOperation {
	for _, condition := range GuardedConditions() {
		if hasReadinessGate(before, condition) && StatusOf(before, condition) == corev1.ConditionTrue && StatusOf(after, condition) == corev1.ConditionFalse {
			return v1beta1.UpdateOperation
		}
	}
	return ""
}

func imagesDiffer(before, after *corev1.Pod) bool {
	containers := podspec.LongRunning(&after.Spec)
	for _, was := range podspec.LongRunning(&before.Spec) {
		for _, is := range containers {
			if is.Name == was.Name && is.Image != was.Image {
				return true
			}
		}
	}
	return false
}

func isShortened(before, after *int64) bool {
	return after != nil && (before == nil || *after < *before)
}

func changedResources(was, is corev1.ResourceRequirements) []corev1.ResourceName {
	var changed []corev1.ResourceName
	for _, lists := range [][2]corev1.ResourceList{{was.Requests, is.Requests}, {was.Limits, is.Limits}} {
		for _, list := range lists {
			for name := range list {
				before, had := lists[0][name]
				after, has := lists[1][name]
				if had != has || !equality.Semantic.DeepEqual(before, after) {
					changed = append(changed, name)
				}
			}
		}
	}
	return changed
}

func restartsFor(c *corev1.Container, resource corev1.ResourceName) bool {
	if resource != corev1.ResourceCPU && resource != corev1.ResourceMemory {
		return true
	}
	return slices.ContainsFunc(c.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.ResourceName == resource && p.RestartPolicy == corev1.RestartContainer
	})
}

// Protects reports whether the budget may refuse the operation. Without resizeApart a resize is an update.
func Protects(b *v1beta1.PodUnavailableBudget, op v1beta1.PubOperation, resizeApart bool) bool {
	operations := b.Spec.ProtectOperations
	if len(operations) == 0 {
		// Admission refuses a value that cannot be read. Here it has no effect.
		operations, _ = conversion.Operations(b.Annotations[v1beta1.ProtectOperationsAnnotation])
	}
	if len(operations) == 0 {
		operations = []v1beta1.PubOperation{v1beta1.DeleteOperation, v1beta1.UpdateOperation, v1beta1.EvictOperation}
	}
	return slices.Contains(operations, op) ||
		op == v1beta1.ResizeOperation && !resizeApart && slices.Contains(operations, v1beta1.UpdateOperation)
}
