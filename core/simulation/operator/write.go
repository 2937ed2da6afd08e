package simulate

import (
	"errors"
	"iter"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// slowest is how long a request takes at most, as in package execute (DefaultTimeout).
const slowest = 7 * time.Second

// attempt is an action that is under way. Its requests take turns with those of other actions.
type attempt struct {
	*Operator
	result     *progress.Outcome
	resume     func() (struct{}, bool)
	pause      func(struct{}) bool
	wasRefused bool // met one of Faults.Refused
}

// begin has an action wait for its first turn.
func (o *Operator) begin(r *progress.Outcome) *attempt {
	t := &attempt{Operator: o, result: r}
	t.resume, _ = iter.Pull(func(pause func(struct{}) bool) { // every attempt is run to its end
		t.pause = pause
		t.run()
	})
	return t
}

// turn has the action do its next request. It reports whether that was the last one.
func (t *attempt) turn() (ended bool) {
	_, more := t.resume()
	return !more
}

// letOthersGo ends a turn.
func (t *attempt) letOthersGo() { t.pause(struct{}{}) }

// run writes the action and tells everybody who follows what became of it.
func (t *attempt) run() {
	a := t.result.Action
	*t.result = t.try(a)
	t.result.Action = a
	if err := t.result.Err; err != nil && !errors.Is(err, ErrCrash) && !errors.Is(err, progress.ErrExpired) {
		t.quiet.others[a.Purpose()] = !t.wasRefused
	}
	t.tell(t.result)
	t.world.tellResult(t.result)
}

// try writes one action. A dry run takes time, too.
func (t *attempt) try(a *action.Action) progress.Outcome {
	if !a.Expired(t.world.now) {
		if r := t.dryRun(a); r.State != progress.Done {
			return r
		}
	}
	if a.Expired(t.world.now) {
		return progress.Expired(a)
	}
	switch a.Verb {
	case action.Create:
		return t.create(a)
	case action.Delete:
		return t.delete(a)
	default:
		return t.patch(a)
	}
}

func (t *attempt) patch(a *action.Action) progress.Outcome {
	if a.Verb == action.Adopt {
		if err := t.mayAdopt(a); err != nil {
			return progress.OutcomeOf(err)
		}
	}
	if a.Guard == action.Unmounted {
		if pod := t.world.mountingPod(a.Object, a.ForPod); pod != "" {
			return progress.ClaimMounted(sentence(a), pod)
		}
	}
	object := a.Object
	for i, patch := range a.Patches {
		if i > 0 {
			t.letOthersGo()
		}
		n, err := t.request(request{object: object, kind: kindOfPatch(object, patch), shown: isShown(object, patch.Subresource, false), write: func() (action.Object, error) {
			return t.world.Patch(OperatorActor, object, patch)
		}})
		if err != nil {
			r := progress.OutcomeOf(err)
			r.Late = i > 0
			return r
		}
		object = n
	}
	return progress.Outcome{State: progress.Done, Object: object}
}

func (t *attempt) delete(a *action.Action) progress.Outcome {
	if a.Guard == action.Unmounted {
		if pod := t.world.mountingPod(a.Object, a.ForPod); pod != "" {
			return progress.ClaimMounted(sentence(a), pod)
		}
	}
	if err := t.remove(a.Object, a.Object); err != nil {
		return progress.OutcomeOf(err)
	}
	for _, then := range a.Dependents {
		t.letOthersGo()
		if t.world.mountingPod(then, "") != "" {
			continue
		}
		planned := then.DeepCopyObject().(action.Object)
		planned.SetResourceVersion("") // what goes along is deleted in any version
		if err := t.remove(then, planned); err != nil && !apierrors.IsNotFound(err) {
			return progress.OutcomeOf(err)
		}
	}
	return progress.Outcome{State: progress.Done}
}

// remove deletes an object in the version that the plan was made from.
func (t *attempt) remove(object, planned action.Object) error {
	_, err := t.request(request{
		object: object, kind: "delete " + plainKind(object), shown: isShown(object, "", true), deletes: true,
		write: func() (action.Object, error) { return object, t.world.Delete(OperatorActor, planned) },
	})
	return err
}

// mayAdopt looks at the owners as they are now: one that is gone or going must not take anything.
func (t *attempt) mayAdopt(a *action.Action) error {
	for _, patch := range a.Patches {
		n, err := applyPatch(a.Object, patch)
		if err != nil {
			return err
		}
		for _, ref := range n.GetOwnerReferences() {
			owner := t.world.owner(ref, a.Object.GetNamespace())
			if owner == nil || owner.GetDeletionTimestamp() != nil {
				return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(ref.Kind)}, ref.Name)
			}
		}
	}
	return nil
}

func (t *attempt) create(a *action.Action) progress.Outcome {
	for _, first := range a.Prerequisites {
		if _, err := t.post(first); err != nil && !apierrors.IsAlreadyExists(err) {
			return progress.OutcomeOf(err)
		}
		t.letOthersGo()
	}
	created, err := t.post(a.Object)
	if found := t.world.Latest(a.Object); apierrors.IsAlreadyExists(err) && found != nil {
		return collision(a, err, found)
	}
	r := progress.OutcomeOf(err)
	r.Object = created
	return r
}

// collision is the outcome where an object already has the name.
func collision(a *action.Action, exists error, found action.Object) progress.Outcome {
	return progress.NameTaken(sentence(a), exists, found, controllerOf(a.Object))
}

func (t *attempt) post(o action.Object) (action.Object, error) {
	return t.request(request{object: o, kind: "create " + plainKind(o), shown: true, write: func() (action.Object, error) {
		return t.world.Create(OperatorActor, o)
	}})
}

// request sends one write, with all that can happen to it on the way.
func (t *attempt) request(r request) (action.Object, error) {
	if t.crashed {
		return nil, ErrCrash
	}
	t.world.sent = t.world.now
	defer func() { t.world.sent = time.Time{} }()
	if t.roll(t.faults.Interleave) {
		t.world.stepWithin(slowest)
	}
	if err := t.refusal(r.object); err != nil {
		return nil, err
	}
	object := r.object
	if err := t.refused(r); err != nil {
		if apierrors.IsTimeout(err) && !r.dryRun && t.rng.IntN(2) == 0 { // nobody knows what became of it
			_, _ = r.write()
			t.written[KindOf(object)] = len(t.world.table(KindOf(object)).events)
		}
		return nil, err
	}
	if r.dryRun {
		return object, t.world.dryRun(r.write)
	}
	return t.deliver(r)
}

// deliver has the server take a write, and perhaps the operator miss its answer.
func (t *attempt) deliver(r request) (action.Object, error) {
	object := r.object
	noops, events := t.world.noops[OperatorActor], len(t.world.table(KindOf(object)).events)
	n, err := r.write()
	if err != nil {
		if isMalformed(err) {
			t.world.Violate("a write that no server takes: %v", err)
		}
		return nil, err
	}
	if t.world.noops[OperatorActor] > noops {
		t.world.Violate("a write that changes nothing: %s %s", KindOf(object), object.GetName())
	}
	t.writes++
	lost := t.roll(t.faults.Timeout)
	switch {
	case !lost:
		t.answered(r, n, events)
	case !t.faults.ForgetsLostAnswers:
		// After a timeout the operator cannot know what became of the write, and must not go on
		// before it does.
		t.written[KindOf(object)] = len(t.world.table(KindOf(object)).events)
	}
	switch {
	case t.writes == t.faults.CrashAfter:
		t.crashed = true
		return nil, ErrCrash
	case lost:
		return nil, apierrors.NewTimeoutError("the answer was lost", 0)
	}
	return n, nil
}

// isMalformed says that no server ever takes the write.
func isMalformed(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnsupportedMediaType(err)
}
