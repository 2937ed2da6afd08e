package forecast

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// room returns the reason why the node of a running pod cannot give it the cpu and memory that it now requests: the node has not
// as much, or the other pods of the node have it.
func (s *scheduler) room(w *cluster.World, pod *corev1.Pod) (reason string) {
	node := cluster.Get[*corev1.Node](w.View(nil), "", pod.Spec.NodeName)
	if node == nil {
		return ""
	}
	want, used := wanted(pod), corev1.ResourceList{}
	for _, other := range s.load(pod.Spec.NodeName).pods {
		if other.UID != pod.UID {
			addTo(used, wanted(allocated(other)))
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		all, known := node.Status.Allocatable[name]
		amount := want[name]
		if !known || amount.IsZero() {
			continue
		}
		if amount.Cmp(all) > 0 {
			return corev1.PodReasonInfeasible
		}
		if amount.Add(used[name]); amount.Cmp(all) > 0 {
			reason = corev1.PodReasonDeferred
		}
	}
	return reason
}

// allocated returns the pod with the resources that its node gives it: a container runs with the earlier ones while a resize waits.
func allocated(pod *corev1.Pod) *corev1.Pod {
	pending := podstate.Condition(pod, corev1.PodResizePending)
	if pending == nil || pending.Status != corev1.ConditionTrue {
		return pod
	}
	pod = pod.DeepCopy()
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, c := range podspec.LongRunning(&pod.Spec) {
		for i := range statuses {
			if statuses[i].Name == c.Name && statuses[i].Resources != nil {
				c.Resources = *statuses[i].Resources
			}
		}
	}
	return pod
}
