package judges

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// CheckInPlace requires what every in-place update guarantees. The pod keeps its node and its address. With readiness
// gate InPlaceUpdateReady, images change only while the condition is not True, and the condition becomes True again
// only when the status shows that every container whose image was changed runs the image of the spec. The image of a
// native sidecar changes apart from those of other containers. No container is stopped before the kubelet has reported the
// pod not ready for as long as the grace period says, and from then on nobody reports it ready.
func (w *World) CheckInPlace() {
	changed := map[types.UID]map[string]bool{} // containers by their names
	out := newOutOfService()
	w.OnEvent(func(e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		old, _ := e.Old.(*corev1.Pod)
		if !ok || e.Type != cluster.Modified {
			return
		}
		if old.Spec.NodeName != "" && old.Spec.NodeName != pod.Spec.NodeName || old.Status.PodIP != "" && old.Status.PodIP != pod.Status.PodIP {
			w.Violate("pod %s has another node or address", pod.Name)
		}
		defer out.watch(w, e, pod)
		if !podstate.HasReadinessGate(pod, contract.InPlaceUpdateReady) || e.Actor != cluster.OperatorActor {
			return
		}
		if names := otherImages(old, pod); len(names) > 0 {
			if changed[pod.UID] == nil {
				changed[pod.UID] = map[string]bool{}
			}
			maps.Copy(changed[pod.UID], names)
			w.checkImages(old, pod, names)
			out.stops(w, old, pod)
		}
		if cluster.IsTrue(pod, contract.InPlaceUpdateReady) && !cluster.IsTrue(old, contract.InPlaceUpdateReady) {
			w.checkRenewed(pod, changed[pod.UID])
		}
	})
}

// checkImages checks one write of images of the containers with the names.
func (w *World) checkImages(old, pod *corev1.Pod, names map[string]bool) {
	if len(names) > 1 && slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return names[c.Name] }) {
		w.Violate("pod %s gets other images for a native sidecar and another container at once", pod.Name)
	}
	if cluster.IsTrue(old, contract.InPlaceUpdateReady) || cluster.IsTrue(pod, contract.InPlaceUpdateReady) {
		w.Violate("pod %s gets another image while InPlaceUpdateReady is True", pod.Name)
	}
}

func (w *World) checkRenewed(pod *corev1.Pod, changed map[string]bool) {
	if !w.Runs(pod.UID) {
		return
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, spec := range podspec.LongRunning(&pod.Spec) {
		shown := slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool {
			return s.Name == spec.Name && w.ImageOf(pod.UID, spec.Name, s.ContainerID) == spec.Image
		})
		if changed[spec.Name] && !shown {
			w.Violate("pod %s becomes ready for service, but container %s was not yet seen with image %s", pod.Name, spec.Name, spec.Image)
		}
	}
}

// otherImages returns the names of the containers that have other images in b than in a.
func otherImages(a, b *corev1.Pod) map[string]bool {
	names := map[string]bool{}
	before := podspec.LongRunning(&a.Spec)
	for i, c := range podspec.LongRunning(&b.Spec) {
		if before[i].Image != c.Image {
			names[c.Name] = true
		}
	}
	return names
}
