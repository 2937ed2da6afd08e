package forecast

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// room returns the reason why the node of a running pod cannot give it the cpu and memory that it now requests: the node has not
// as much, or the other pods of the node have it.
func (s *scheduler) room(w *cluster.World, pod *corev1.Pod) (reason string) {
	node := cluster.Get[*corev1.Node](w.View(nil), "", pod.Spec.NodeName)
	if node == nil {
		return ""
	}
	wanted, used := requests(pod), corev1.ResourceList{}
	for _, other := range s.load(pod.Spec.NodeName).pods {
		if other.UID != pod.UID {
			addTo(used, requests(other))
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		all, known := node.Status.Allocatable[name]
		want := wanted[name]
		if !known || want.IsZero() {
			continue
		}
		if want.Cmp(all) > 0 {
			return corev1.PodReasonInfeasible
		}
		if want.Add(used[name]); want.Cmp(all) > 0 {
			reason = corev1.PodReasonDeferred
		}
	}
	return reason
}
