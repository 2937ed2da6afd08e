package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/quantity"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/inplace/running"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// PendingResizeSince returns when the pod was asked to take the resources of the template that its node puts off, can
// never give or fails to give, as the kubelet reports by conditions PodResizePending and PodResizeInProgress; zero if
// it does not report so. The moment is the time of the last write, by the clock of the operator. Requests of other
// clients, such as a vertical autoscaler, are not part of the update.
func PendingResizeSince(pod *corev1.Pod, template *corev1.PodTemplateSpec, o Options) time.Time {
	if !o.Resize || !completion.GivenUp(pod) || !completion.Observed(pod) || !hasResources(pod, template) {
		return time.Time{}
	}
	before := record.Read(action.NewPodChange(pod, metav1.Time{}))
	s := before.State
	if s == nil || before.Grace != nil || before.Unreadable() || !s.UpdateResources {
		return time.Time{}
	}
	var since time.Time
	for _, c := range podspec.LongRunning(&pod.Spec) {
		if at := s.WrittenAt(c.Name); s.Touched(c.Name) && completion.AwaitResources(pod, c) != nil && at.After(since) {
			since = at
		}
	}
	return since
}

// StoppedResize names a container with limits that can no longer be raised in place. The container is down before the
// resize is written, or it is in a crash loop and may run permanently inside the old limit of the pod: its limits were
// raised a moment ago, or it is killed for its memory. The result is empty if there is none.
func StoppedResize(pod *corev1.Pod, o Options, now metav1.Time) string {
	c := action.NewPodChange(pod, now)
	if !o.Resize || record.NothingUnderWay(c) {
		return ""
	}
	before := record.Read(c)
	if before.State == nil || before.Grace != nil || before.Unreadable() {
		return ""
	}
	for _, container := range podspec.LongRunning(&pod.Spec) {
		if stopsResize(before.State, c, container.Name) {
			return container.Name
		}
	}
	return ""
}

func stopsResize(s *record.State, c *action.PodChange, container string) bool {
	switch {
	case raisesLimit(c.Pod, container, s.NextContainerResources[container]) != "":
		return isDown(s, c, container)
	case !slices.Contains(s.RaisedLimits, container) || !completion.Observed(c.Pod) || completion.GivenUp(c.Pod):
		return false
	}
	return running.Crashes(c.Pod, container) && mayLackLimits(s, c, container)
}

// mayLackLimits reports whether a container with raised limits may run inside the old ones: they were written a moment
// ago, or it is killed for its memory and has not run for long since. The latter has no end: the operator may have been
// down since. A crash for another reason long after the write does not come from the limits.
func mayLackLimits(s *record.State, c *action.PodChange, container string) bool {
	if c.Now.Sub(s.WrittenAt(container)) < completion.UnsureTime {
		return true
	}
	return running.KilledForMemory(c.Pod, container) &&
		(!running.Is(c.Pod, container) || running.Since(c.Pod, container, c.Now.Add(-completion.UnsureTime)))
}

// ResizedByOthers reports whether the pod asks for other resources than the template names, with nothing of its update
// left to be written: the pod's wait for them is not part of the update.
func ResizedByOthers(pod *corev1.Pod, template *corev1.PodTemplateSpec) bool {
	before := record.Read(action.NewPodChange(pod, metav1.Time{}))
	return pending(before) == nil && !before.Unreadable() && !hasResources(pod, template)
}

// hasResources reports whether the pod asks for all the cpu and memory that the template names.
func hasResources(pod *corev1.Pod, template *corev1.PodTemplateSpec) bool {
	for _, want := range podspec.LongRunning(&template.Spec) {
		if c := running.Container(pod, want.Name); c == nil || !quantity.None(quantity.Missing(c.Resources, quantity.Effective(want.Resources))) {
			return false
		}
	}
	return true
}
