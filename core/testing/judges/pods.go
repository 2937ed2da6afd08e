package judges

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// CheckUnique requires that no two active pods have the same value of the label.
func (w *World) CheckUnique(label string) {
	w.OnEvent(func(e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == cluster.Deleted || pod.Labels[label] == "" {
			return
		}
		for _, other := range w.Pods() {
			if podstate.Of(other, w.Now(), 0).Active && other.UID != pod.UID && other.Namespace == pod.Namespace && other.Labels[label] == pod.Labels[label] {
				w.Violate("pods %s and %s share %s=%s", pod.Name, other.Name, label, pod.Labels[label])
			}
		}
	})
}

// CheckOwnership requires that the operator never writes to a pod that the object with the UID controls neither before
// nor after the write. The first conditions of a pod are patched without a resourceVersion, so they may arrive after
// its release.
func (w *World) CheckOwnership(owner types.UID) {
	w.OnEvent(func(e cluster.Event) {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Actor != cluster.OperatorActor || cluster.ControllerOf(pod) == owner || e.Old != nil && cluster.ControllerOf(e.Old) == owner {
			return
		}
		if old, ok := e.Old.(*corev1.Pod); ok && e.Subresource == "status" && podstate.Condition(old, contract.InPlaceUpdateReady) == nil {
			return
		}
		w.Violate("a write to pod %s of somebody else", pod.Name)
	})
}

// CheckClaims requires that no claim is deleted that a non-terminating pod mounts, whoever owns the pod. It checks the
// operator and the garbage collector, which deletes claims whose owners, as the operator set them, no longer exist.
func (w *World) CheckClaims() {
	w.OnEvent(func(e cluster.Event) {
		claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
		if !ok || e.Actor != cluster.OperatorActor && e.Actor != cluster.CollectorActor || e.Old == nil || e.Old.GetDeletionTimestamp() != nil || claim.DeletionTimestamp == nil {
			return
		}
		if pod := w.MountingPod(claim, ""); pod != "" {
			w.Violate("claim %s is deleted and pod %s uses it", claim.Name, pod)
		}
	})
}
