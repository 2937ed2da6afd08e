package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// collectAfter is the garbage collector: an object that has lost all its owners is deleted after a while, one that has
// lost some of them only loses the references. A claim goes once no pod uses it.
func (w *World) collectAfter(e Event) {
	switch {
	case e.Type == Deleted:
		w.After(w.Delay(2*time.Second), func() { w.collectDependents(e.Object) })
		if _, ok := e.Object.(*corev1.Pod); ok {
			w.After(w.Delay(time.Second), w.releaseClaims)
		}
	case e.Object.GetDeletionTimestamp() != nil && e.Kind == "PersistentVolumeClaim":
		w.After(w.Delay(time.Second), w.releaseClaims)
	case len(e.Object.GetOwnerReferences()) > 0 && (e.Type == Added || !equality.Semantic.DeepEqual(e.Old.GetOwnerReferences(), e.Object.GetOwnerReferences())):
		if len(w.deadOwners(e.Object)) > 0 {
			w.After(w.Delay(2*time.Second), func() { w.collect(e.Object) })
		}
	}
}

func (w *World) collectDependents(owner action.Object) {
	for _, kind := range w.Kinds() {
		t := w.tables[kind]
		for _, key := range slices.Clone(t.order) {
			o := t.objects[key]
			if o != nil && slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }) {
				w.collect(o)
			}
		}
	}
}

// deadOwners returns the owner references of the object whose owners do not exist.
func (w *World) deadOwners(o action.Object) []metav1.OwnerReference {
	var dead []metav1.OwnerReference
	for _, ref := range o.GetOwnerReferences() {
		if w.Owner(ref, o.GetNamespace()) == nil {
			dead = append(dead, ref)
		}
	}
	return dead
}

// Owner returns the object that the reference means, or nil.
func (w *World) Owner(ref metav1.OwnerReference, namespace string) action.Object {
	t := w.tables[ref.Kind]
	if t == nil {
		return nil
	}
	o := t.objects[types.NamespacedName{Namespace: namespace, Name: ref.Name}]
	if o == nil || o.GetUID() != ref.UID {
		return nil
	}
	return o
}

func (w *World) collect(o action.Object) {
	o = w.Latest(o)
	if o == nil || o.GetDeletionTimestamp() != nil {
		return
	}
	dead := w.deadOwners(o)
	switch {
	case len(dead) == 0:
	case len(dead) == len(o.GetOwnerReferences()):
		_ = w.Delete(CollectorActor, o) // the object is the present one, so nothing can refuse
	default:
		_ = Change(w, CollectorActor, "", o, func(n action.Object) {
			n.SetOwnerReferences(slices.DeleteFunc(n.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
				return slices.ContainsFunc(dead, func(d metav1.OwnerReference) bool { return d.UID == r.UID })
			}))
		})
	}
}
