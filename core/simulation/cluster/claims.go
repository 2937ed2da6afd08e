package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// bind gives a claim its volume.
func (w *World) bind(key types.NamespacedName) {
	claim := Get[*corev1.PersistentVolumeClaim](w.View(nil), key.Namespace, key.Name)
	if claim == nil || claim.Status.Phase == corev1.ClaimBound {
		return
	}
	n := *claim
	n.Status = corev1.PersistentVolumeClaimStatus{
		Phase:       corev1.ClaimBound,
		Capacity:    claim.Spec.Resources.Requests,
		AccessModes: claim.Spec.AccessModes,
	}
	w.Commit(Event{
		Type:        Modified,
		Actor:       BinderActor,
		Object:      &n,
		Old:         claim,
		Subresource: "status",
	})
}

// releaseClaims lets terminating claims go that no pod uses.
func (w *World) releaseClaims() {
	for _, claim := range List[*corev1.PersistentVolumeClaim](w.View(nil)) {
		inUse := slices.ContainsFunc(w.Pods(), func(pod *corev1.Pod) bool {
			return pod.Namespace == claim.Namespace && uses(pod, claim.Name)
		})
		if claim.DeletionTimestamp == nil || inUse {
			continue
		}
		_ = Change(w, CollectorActor, "", claim, func(c *corev1.PersistentVolumeClaim) {
			c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == claimProtection })
		})
	}
}

// MountingPod returns the name of a non-terminating pod other than except that mounts the claim. It is empty if there
// is none, or if the object is no claim.
func (w *World) MountingPod(o action.Object, except types.UID) string {
	if _, ok := o.(*corev1.PersistentVolumeClaim); !ok {
		return ""
	}
	for _, pod := range w.Pods() {
		if pod.DeletionTimestamp == nil && pod.UID != except && pod.Namespace == o.GetNamespace() && uses(pod, o.GetName()) {
			return pod.Name
		}
	}
	return ""
}

// uses reports whether the pod mounts the claim.
func uses(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}
