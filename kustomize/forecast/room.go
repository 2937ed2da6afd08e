package forecast

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// room returns the reason why the node of a running pod cannot give it the cpu and memory that it now requests: the node has not
// as much, or the other pods of the node have it.
func (s *scheduler) room(w *cluster.World, pod *corev1.Pod) (reason string) {
	node := cluster.Get[*corev1.Node](w.View(nil), "", pod.Spec.NodeName)
	if node == nil {
		return ""
	}
	wanted := requests(pod)
	used := s.usedBeside(w, pod)
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

// usedBeside is the sum of the requests of the other pods on the node of a pod.
func (s *scheduler) usedBeside(w *cluster.World, pod *corev1.Pod) map[corev1.ResourceName]resource.Quantity {
	var beside []*corev1.Pod
	for _, other := range w.Pods() {
		if other.Spec.NodeName == pod.Spec.NodeName && other.UID != pod.UID {
			beside = append(beside, other)
		}
	}
	used := map[corev1.ResourceName]resource.Quantity{}
	for _, load := range []load{s.others[pod.Spec.NodeName], loads(beside)[pod.Spec.NodeName]} {
		for name, more := range load.sum {
			sum := used[name]
			sum.Add(more)
			used[name] = sum
		}
	}
	return used
}
