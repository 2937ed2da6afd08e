package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// Leave deletes an object and orphans its dependents, as kubectl delete --cascade=orphan does.
func (w *World) Leave(actor string, owner action.Object) error {
	w.Tell(actor, "delete %s %s and keep what it owns", KindOf(owner), owner.GetName())
	for _, kind := range w.Kinds() {
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
