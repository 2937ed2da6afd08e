package simulate

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/testing/judges"
)

// OrphansRevisions removes the owner references of a random revision.
func OrphansRevisions(w *World, rng *rand.Rand) {
	revisions := cluster.List[*appsv1.ControllerRevision](w.View(nil))
	if len(revisions) == 0 {
		return
	}
	r := revisions[rng.IntN(len(revisions))]
	w.Tell("foreign", "orphan revision %s", r.Name)
	_ = cluster.Change(w, cluster.UserActor, "", r, func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil })
}

// OrphanedRevisions lists the revisions of the workload's pods that have no owner.
func OrphanedRevisions(w *World, pods []*corev1.Pod) []string {
	var wrong []string
	live := judges.CountByRevision(pods)
	for _, r := range cluster.List[*appsv1.ControllerRevision](w.View(nil)) {
		if n := live[podstate.ShortHash(r.Name)]; n > 0 && metav1.GetControllerOfNoCopy(r) == nil {
			wrong = append(wrong, fmt.Sprintf("revision %s of %d pods belongs to nobody", r.Name, n))
		}
	}
	return wrong
}
