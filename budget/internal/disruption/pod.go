package disruption

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// GuardedConditions are those through which operators take a pod out of service before they change it.
func GuardedConditions() []corev1.PodConditionType {
	return []corev1.PodConditionType{contract.InPlaceUpdateReady, contract.KruisePodReady}
}

// IsProtected reports whether the pod serves its application, as the API server has it: disruptions of other pods are
// always granted.
func IsProtected(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning &&
		StatusOf(pod, corev1.PodReady) == corev1.ConditionTrue && !HasUnavailableLabel(pod)
}

// IsAvailable reports whether the pod counts as available. It is narrower than IsProtected: a pod that is about to leave
// service counts no more, and is still asked about.
func IsAvailable(pod *corev1.Pod) bool { return Unavailability(pod) == "" }

// Unavailability returns in words why the pod does not count as available, empty if it does.
func Unavailability(pod *corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "terminating"
	case HasUnavailableLabel(pod):
		return "labelled as unavailable"
	case pod.Status.Phase != corev1.PodRunning:
		return strings.ToLower(string(pod.Status.Phase))
	case StatusOf(pod, corev1.PodReady) != corev1.ConditionTrue:
		return "not ready"
	case isHeld(pod):
		return "leaving service"
	case IsBehind(pod):
		return "updated, waiting for the kubelet"
	}
	return ""
}

// IsSettled reports whether the kubelet has seen the pod as it is.
func IsSettled(pod *corev1.Pod) bool {
	return !IsBehind(pod) && (StatusOf(pod, corev1.PodReady) != corev1.ConditionTrue || !isHeld(pod))
}

// IsBehind reports whether the kubelet has not seen the newest spec. Kubelets before 1.34 do not report it.
func IsBehind(pod *corev1.Pod) bool {
	return pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation
}

// isHeld reports whether an operator has taken the pod out of service.
func isHeld(pod *corev1.Pod) bool {
	return slices.ContainsFunc(GuardedConditions(), func(t corev1.PodConditionType) bool {
		return hasReadinessGate(pod, t) && StatusOf(pod, t) == corev1.ConditionFalse
	})
}

func hasReadinessGate(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == condition })
}

// StatusOf is the status of the condition; empty if the pod has none.
func StatusOf(pod *corev1.Pod, condition corev1.PodConditionType) corev1.ConditionStatus {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == condition {
			return pod.Status.Conditions[i].Status
		}
	}
	return ""
}

// HasUnavailableLabel reports whether the pod has a label that marks it as unavailable.
func HasUnavailableLabel(pod *corev1.Pod) bool {
	for key := range pod.Labels {
		if strings.HasPrefix(key, v1beta1.UnavailableLabelPrefix) {
			return true
		}
	}
	return false
}

// Guarded counts the pods that have a mark of a budget: the API server asks about no others.
func Guarded(pods []*corev1.Pod) (n int32) {
	for _, pod := range pods {
		if podstate.IsActive(pod) && isMarked(pod) {
			n++
		}
	}
	return n
}

// IsGuardedOtherwise reports whether a pod has got its mark, or lost it.
func IsGuardedOtherwise(before, after *corev1.Pod) bool { return isMarked(before) != isMarked(after) }

func isMarked(pod *corev1.Pod) bool {
	_, marked := pod.Annotations[v1beta1.RelatedAnnotation]
	_, legacy := pod.Annotations[v1beta1.LegacyRelatedAnnotation]
	return marked || legacy
}

// IsExempt reports whether the user wants the pod never to be refused.
func IsExempt(pod *corev1.Pod) bool {
	exempt, err := strconv.ParseBool(pod.Annotations[v1beta1.NoProtectAnnotation])
	return err == nil && exempt
}
