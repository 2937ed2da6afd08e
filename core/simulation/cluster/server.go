package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// claimProtection keeps a claim as long as a pod uses it.
const claimProtection = "kubernetes.io/pvc-protection"

// Create makes an object as the server does: with a UID, a version, generation 1 and without the
// status that was sent. It fails with AlreadyExists or Invalid.
func (w *World) Create(actor string, o action.Object) (action.Object, error) {
	if o.GetName() == "" || o.GetNamespace() == "" && PlainKind(o) != "Workload" { // whose kind may know no namespaces
		return nil, invalid(o, field.Required(field.NewPath("metadata", "name"), "name and namespace are required"))
	}
	if w.table(KindOf(o)).objects[KeyOf(o)] != nil {
		return nil, apierrors.NewAlreadyExists(ResourceOf(o), o.GetName())
	}
	n := o.DeepCopyObject().(action.Object)
	n.SetUID(w.NewUID())
	n.SetCreationTimestamp(w.Stamp())
	n.SetDeletionTimestamp(nil)
	if hasGeneration(n) {
		n.SetGeneration(1)
	}
	if pod, ok := n.(*corev1.Pod); ok {
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	}
	e := Event{Type: Added, Actor: actor, Object: n}
	if err := w.ask(w.Options.Mutate, e); err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case *corev1.Pod:
		if len(n.Spec.Containers) == 0 {
			return nil, invalid(o, field.Required(field.NewPath("spec", "containers"), "a pod needs a container"))
		}
		if volumes := podspec.UndeclaredVolumes(&n.Spec); len(volumes) > 0 {
			return nil, invalid(o, field.NotFound(field.NewPath("spec", "containers").Index(0).Child("volumeMounts").Index(0).Child("name"), volumes[0]))
		}
	case *corev1.PersistentVolumeClaim:
		n.Finalizers = append(n.Finalizers, claimProtection)
		n.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
		w.After(w.Delay(3*time.Second), func() { w.bind(KeyOf(n)) })
	}
	if err := w.ask(w.Options.Admission, e); err != nil {
		return nil, err
	}
	return w.Commit(e), nil
}

// Patch applies a patch to the object of that kind and name, provided that it still has the UID and
// the resourceVersion that o carries; an empty one demands nothing. It returns the new object, and
// fails with NotFound, Conflict, Invalid or UnsupportedMediaType.
func (w *World) Patch(actor string, o action.Object, patch action.Patch) (action.Object, error) {
	old := w.Latest(o)
	if err := preconditions(o, old, !patch.AnyVersion); err != nil {
		return nil, err
	}
	n, err := Apply(old, patch)
	if err != nil {
		return nil, err
	}
	manager := actor
	if patch.FieldManager != "" {
		manager = patch.FieldManager
	}
	w.manageResources(manager, patch.Subresource, old, n)
	return w.update(actor, patch.Subresource, old, n)
}

// Change edits the present state of an object in the way of a user with an editor: without
// preconditions and under the rules of the subresource.
func Change[T action.Object](w Editor, actor, subresource string, o T, edit func(T)) error {
	return w.Edit(actor, subresource, o, func(n action.Object) { edit(n.(T)) })
}

// Editor is a World, or has one.
type Editor interface {
	Edit(actor, subresource string, o action.Object, edit func(action.Object)) error
}

// Edit is Change for an object of any kind.
func (w *World) Edit(actor, subresource string, o action.Object, edit func(action.Object)) error {
	old := w.Latest(o)
	if old == nil {
		return apierrors.NewNotFound(ResourceOf(o), o.GetName())
	}
	n := old.DeepCopyObject().(action.Object)
	edit(n)
	w.manageResources(actor, subresource, old, n)
	_, err := w.update(actor, subresource, old, n)
	return err
}

// update stores n in place of old when the rules allow it.
func (w *World) update(actor, subresource string, old, n action.Object) (action.Object, error) {
	if equality.Semantic.DeepEqual(old, n) {
		w.noops[actor]++
		return old, nil
	}
	specChanged, errs := validateUpdate(subresource, old, n)
	if len(errs) > 0 {
		return nil, invalid(n, errs...)
	}
	if specChanged && hasGeneration(n) {
		n.SetGeneration(old.GetGeneration() + 1)
	}
	e := Event{
		Type:        Modified,
		Actor:       actor,
		Object:      n,
		Old:         old,
		Subresource: subresource,
	}
	if err := w.ask(w.Options.Admission, e); err != nil {
		return nil, err
	}
	if pod, ok := n.(*corev1.Pod); ok && subresource == "resize" && w.Options.JudgesResizes {
		if err := w.fitsNode(old.(*corev1.Pod), pod); err != nil {
			return nil, err
		}
	}
	if Gone(n) {
		e.Type = Deleted
	}
	return w.Commit(e), nil
}

// Delete begins the deletion of the object under the preconditions that o carries. Pods on a node
// stay until the kubelet is done, objects with finalizers until those are gone.
func (w *World) Delete(actor string, o action.Object) error {
	old := w.Latest(o)
	if err := preconditions(o, old, true); err != nil {
		return err
	}
	if old.GetDeletionTimestamp() != nil {
		w.noops[actor]++
		return nil
	}
	if err := w.ask(w.Options.Admission, Event{Type: Deleted, Actor: actor, Object: old, Old: old}); err != nil {
		return err
	}
	n := old.DeepCopyObject().(action.Object)
	grace := int64(0)
	if pod, ok := n.(*corev1.Pod); ok && pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
		grace = 30
		if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = *s
		}
	}
	deletion := metav1.NewTime(w.Stamp().Add(time.Duration(grace) * time.Second))
	n.SetDeletionTimestamp(&deletion)
	n.SetDeletionGracePeriodSeconds(&grace)
	if n.GetGeneration() > 0 {
		n.SetGeneration(n.GetGeneration() + 1)
	}
	if Gone(n) {
		w.Commit(Event{Type: Deleted, Actor: actor, Object: n, Old: old})
		return nil
	}
	w.Commit(Event{Type: Modified, Actor: actor, Object: n, Old: old})
	return nil
}

// Gone reports whether nothing keeps an object that is being deleted.
func Gone(o action.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// preconditions compares the UID and, unless any version will do, the resourceVersion.
func preconditions(asked, have action.Object, sameVersion bool) error {
	if have == nil {
		return apierrors.NewNotFound(ResourceOf(asked), asked.GetName())
	}
	if uid := asked.GetUID(); uid != "" && uid != have.GetUID() {
		return apierrors.NewConflict(ResourceOf(asked), asked.GetName(), fmt.Errorf("the UID is %s, not %s", have.GetUID(), uid))
	}
	if v := asked.GetResourceVersion(); sameVersion && v != "" && v != have.GetResourceVersion() {
		return apierrors.NewConflict(ResourceOf(asked), asked.GetName(), fmt.Errorf("the version is %s, not %s", have.GetResourceVersion(), v))
	}
	return nil
}

// DryRun does a write as a dry run.
func (w *World) DryRun(write func() (action.Object, error)) error {
	w.inDryRun = true
	defer func() { w.inDryRun = false }()
	_, err := write()
	return err
}
