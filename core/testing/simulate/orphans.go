package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Leave deletes an object and orphans its dependents, as kubectl delete --cascade=orphan does.
func (w *World) Leave(actor string, owner action.Object) error {
	w.Tell(actor, "delete %s %s and keep what it owns", KindOf(owner), owner.GetName())
	for _, kind := range w.kinds() {
		t := w.tables[kind]
		for _, key := range slices.Clone(t.order) {
			if err := w.orphan(actor, t.objects[key], owner); err != nil {
				return err
			}
		}
	}
	return w.Delete(actor, owner)
}

// orphan removes the references to the owner from an object.
func (w *World) orphan(actor string, o, owner action.Object) error {
	refers := func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }
	if !slices.ContainsFunc(o.GetOwnerReferences(), refers) {
		return nil
	}
	return Change(w, actor, "", o, func(n action.Object) {
		n.SetOwnerReferences(slices.DeleteFunc(slices.Clone(n.GetOwnerReferences()), refers))
	})
}

// OrphansRevisions removes the owner references of a random revision.
func OrphansRevisions(w *World, rng *rand.Rand) {
	revisions := List[*appsv1.ControllerRevision](w.View(nil))
	if len(revisions) == 0 {
		return
	}
	r := revisions[rng.IntN(len(revisions))]
	w.Tell("foreign", "orphan revision %s", r.Name)
	_ = Change(w, UserActor, "", r, func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil })
}

// OrphanedRevisions lists the revisions of the workload's pods that have no owner.
func OrphanedRevisions(w *World, pods []*corev1.Pod) []string {
	var wrong []string
	live := CountByRevision(pods)
	for _, r := range List[*appsv1.ControllerRevision](w.View(nil)) {
		if n := live[podstate.ShortHash(r.Name)]; n > 0 && metav1.GetControllerOfNoCopy(r) == nil {
			wrong = append(wrong, fmt.Sprintf("revision %s of %d pods belongs to nobody", r.Name, n))
		}
	}
	return wrong
}
