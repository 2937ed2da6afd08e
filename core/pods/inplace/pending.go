package inplace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// PendingResizeSince returns when the pod was asked to take the resources of the template that its node puts off or can
// never give, as the kubelet says by condition PodResizePending; zero where it does not say so. The moment is that of
// the last write, by the clock of the operator. What somebody else asks for, such as a vertical autoscaler, is none of
// the update's business.
func PendingResizeSince(pod *corev1.Pod, template *corev1.PodTemplateSpec, o Options) time.Time {
	if !o.Resize || trueCondition(pod, corev1.PodResizePending) == nil || !observed(pod) || !hasResources(pod, template) {
		return time.Time{}
	}
	before := readPrior(action.NewPodChange(pod, metav1.Time{}))
	s := before.state
	if s == nil || before.grace != nil || before.unreadable() || !s.UpdateResources {
		return time.Time{}
	}
	var since time.Time
	for _, c := range podspec.LongRunning(&pod.Spec) {
		if at := s.writtenAt(c.Name); s.touched(c.Name) && awaitResources(pod, c) != nil && at.After(since) {
			since = at
		}
	}
	return since
}

// hasResources reports whether the pod asks for all the cpu and memory that the template names.
func hasResources(pod *corev1.Pod, template *corev1.PodTemplateSpec) bool {
	for _, want := range podspec.LongRunning(&template.Spec) {
		if c := containerOf(pod, want.Name); c == nil || !noQuantities(missingQuantities(c.Resources, effective(want.Resources))) {
			return false
		}
	}
	return true
}
