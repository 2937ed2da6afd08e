package forecast

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/nodes"
)

// expandClaims gives each claim what it requests, as the driver of an expandable volume does while a pod uses it.
func expandClaims(w *nodes.World) {
	w.OnEvent(func(e cluster.Event) {
		claim, isClaim := e.Object.(*corev1.PersistentVolumeClaim)
		if !isClaim || e.Type == cluster.Deleted || !isGrowing(claim) {
			return
		}
		key := cluster.KeyOf(claim)
		w.After(assumed, func() {
			claim := cluster.Get[*corev1.PersistentVolumeClaim](w.View(nil), key.Namespace, key.Name)
			if claim == nil || !isGrowing(claim) {
				return
			}
			_ = cluster.Change(w, cluster.BinderActor, "status", claim, func(c *corev1.PersistentVolumeClaim) {
				c.Status.Capacity = c.Spec.Resources.Requests
			})
		})
	})
}

// isGrowing reports whether a volume has less than its claim requests.
func isGrowing(claim *corev1.PersistentVolumeClaim) bool {
	has, is := claim.Status.Capacity[corev1.ResourceStorage]
	return is && has.Cmp(*claim.Spec.Resources.Requests.Storage()) < 0
}
