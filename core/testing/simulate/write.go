package simulate

import (
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// slowest is how long a request takes at most, as in package execute (DefaultTimeout).
const slowest = 7 * time.Second

// do writes one action. What fails is late when something of the action was done before, or rehearsed.
func (o *Operator) do(a *action.Action) (late bool, err error) {
	o.wasRefused = false
	if !a.Outdated(o.world.now) {
		if err := o.rehearse(a); err != nil {
			return true, err
		}
	}
	if a.Outdated(o.world.now) { // a rehearsal takes time, too
		return false, errOutdated
	}
	switch a.Verb {
	case action.Create:
		return false, o.create(a)
	case action.Delete:
		return false, o.delete(a)
	case action.Adopt:
		if err := o.mayAdopt(a); err != nil {
			return false, err
		}
	default: // the patches say it all
	}
	if a.Heir != "" {
		if err := o.unmounted(a); err != nil {
			return false, err
		}
	}
	object := a.Object
	for i, patch := range a.Patches {
		n, err := o.request(request{object: object, kind: kindOfPatch(object, patch), write: func() (action.Object, error) {
			return o.world.Patch(OperatorActor, object, patch)
		}})
		if err != nil {
			return i > 0, err
		}
		object = n
	}
	return false, nil
}

// unmounted fails when a pod is in the way of what would end the claim, at once or with its heir.
func (o *Operator) unmounted(a *action.Action) error {
	if pod := o.world.mounter(a.Object, a.Heir); pod != "" {
		return errors.Join(errMounted, apierrors.NewForbidden(resourceOf(a.Object), a.Object.GetName(), errors.New("pod "+pod+" mounts it")))
	}
	return nil
}

func (o *Operator) delete(a *action.Action) error {
	for _, object := range append([]action.Object{a.Object}, a.Then...) {
		if object == a.Object {
			if err := o.unmounted(a); err != nil {
				return err
			}
		} else if o.world.mounter(object, "") != "" {
			continue
		}
		judged := object
		if object != a.Object { // what goes along is deleted in any version
			judged = object.DeepCopyObject().(action.Object)
			judged.SetResourceVersion("")
		}
		_, err := o.request(request{object: object, kind: "delete " + plainKind(object), write: func() (action.Object, error) {
			return object, o.world.Delete(OperatorActor, judged)
		}})
		if err != nil && (object == a.Object || !apierrors.IsNotFound(err)) {
			return err
		}
	}
	return nil
}

// mayAdopt looks at the owners as they are now: one that is gone or going must not take anything.
func (o *Operator) mayAdopt(a *action.Action) error {
	for _, patch := range a.Patches {
		n, err := applyPatch(a.Object, patch)
		if err != nil {
			return err
		}
		for _, ref := range n.GetOwnerReferences() {
			owner := o.world.owner(ref, a.Object.GetNamespace())
			if owner == nil || owner.GetDeletionTimestamp() != nil {
				return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(ref.Kind)}, ref.Name)
			}
		}
	}
	return nil
}

func (o *Operator) create(a *action.Action) error {
	for _, object := range append(append([]action.Object{}, a.First...), a.Object) {
		_, err := o.request(request{object: object, kind: "create " + plainKind(object), write: func() (action.Object, error) {
			return o.world.Create(OperatorActor, object)
		}})
		if err != nil && (object == a.Object || !apierrors.IsAlreadyExists(err)) {
			return err
		}
	}
	return nil
}

// request sends one write, with all that can happen to it on the way.
func (o *Operator) request(r request) (action.Object, error) {
	o.world.sent = o.world.now
	defer func() { o.world.sent = time.Time{} }()
	if o.roll(o.faults.Interleave) {
		o.world.stepWithin(slowest)
	}
	if err := o.refusal(r.object); err != nil {
		return nil, err
	}
	object := r.object
	if err := o.refused(r); err != nil {
		if apierrors.IsTimeout(err) && !r.dryRun && o.rng.IntN(2) == 0 { // nobody knows what became of it
			_, _ = r.write()
			o.written[KindOf(object)] = len(o.world.table(KindOf(object)).events)
		}
		return nil, err
	}
	if r.dryRun {
		return object, o.world.rehearse(r.write)
	}
	noops := o.world.noops[OperatorActor]
	n, err := r.write()
	if err != nil {
		if isMalformed(err) {
			o.world.Violate("a write that no server takes: %v", err)
		}
		return nil, err
	}
	if o.world.noops[OperatorActor] > noops {
		o.world.Violate("a write that changes nothing: %s %s", KindOf(object), object.GetName())
	}
	o.writes++
	lost := o.roll(o.faults.Timeout)
	if !lost || !o.faults.ForgetsDoubt {
		// After a timeout the operator cannot know what became of the write, and must not go on
		// before it does.
		o.written[KindOf(object)] = len(o.world.table(KindOf(object)).events)
	}
	switch {
	case o.writes == o.faults.CrashAfter:
		return nil, ErrCrash
	case lost:
		return nil, apierrors.NewTimeoutError("the answer was lost", 0)
	}
	return n, nil
}
