package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// PendingResizeSince returns when the pod was asked to take the resources of the template that its node puts off, can
// never give or fails to give, as the kubelet reports by conditions PodResizePending and PodResizeInProgress; zero if
// it does not report so. The moment is the time of the last write, by the clock of the operator. Requests of other
// clients, such as a vertical autoscaler, are not part of the update.
func PendingResizeSince(pod *corev1.Pod, template *corev1.PodTemplateSpec, o Options) time.Time {
	if !o.Resize || !givenUp(pod) || !observed(pod) || !hasResources(pod, template) {
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

// StoppedResize names a container with limits that can no longer be raised in place. The container is down before the
// resize was written, or it is in a crash loop since the resize was written a moment ago, and may run permanently
// inside the old limit of the pod. The result is empty if there is none.
func StoppedResize(pod *corev1.Pod, o Options, now metav1.Time) string {
	c := action.NewPodChange(pod, now)
	if !o.Resize || nothingUnderWay(c) {
		return ""
	}
	before := readPrior(c)
	if before.state == nil || before.grace != nil || before.unreadable() {
		return ""
	}
	for _, container := range podspec.LongRunning(&pod.Spec) {
		if before.state.stopsResize(c, container.Name) {
			return container.Name
		}
	}
	return ""
}

func (s *State) stopsResize(c *action.PodChange, container string) bool {
	switch {
	case raisesLimit(c.Pod, container, s.NextContainerResources[container]) != "":
		return s.isDown(c, container)
	case !slices.Contains(s.RaisedLimits, container) || !observed(c.Pod) || givenUp(c.Pod):
		return false
	}
	return crashes(c.Pod, container) && c.Now.Sub(s.writtenAt(container)) < unsureTime
}

// crashes reports whether the kubelet waits with the next run of the container because it ends again and again.
func crashes(pod *corev1.Pod, container string) bool {
	status := statusOf(pod, container)
	return status != nil && status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"
}

// ResizedByOthers reports whether the pod asks for other resources than the template names, with nothing of its update
// left to be written: the pod's wait for them is not part of the update.
func ResizedByOthers(pod *corev1.Pod, template *corev1.PodTemplateSpec) bool {
	before := readPrior(action.NewPodChange(pod, metav1.Time{}))
	return before.pending() == nil && !before.unreadable() && !hasResources(pod, template)
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
