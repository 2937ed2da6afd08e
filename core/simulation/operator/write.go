package operator

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// attempt is an action that is under way. Its requests take turns with those of other actions.
type attempt struct {
	*Operator
	*turns

	action *action.Action
	result *progress.Outcome
}

// begin has an action wait for its first turn.
func (o *Operator) begin(r *progress.Outcome) *attempt {
	t := &attempt{Operator: o, action: r.Action, result: r}
	t.turns = inTurns(t.run)
	return t
}

// run writes the action and tells everybody who follows what became of it.
func (t *attempt) run() {
	a := t.result.Action
	*t.result = t.try(a)
	t.result.Action = a
	if t.settings.Ended != nil {
		t.settings.Ended(t.result)
	}
	tellResult(t.world, t.settings.Actor, t.result)
}

// try writes one action. A dry run takes time, too.
func (t *attempt) try(a *action.Action) progress.Outcome {
	if !a.Expired(t.world.Now()) {
		if r := t.dryRun(a); r.State != progress.Done {
			return r
		}
	}
	if a.Expired(t.world.Now()) {
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
		if pod := t.world.MountingPod(a.Object, a.ForPod); pod != "" {
			return progress.ClaimMounted(sentence(a), pod)
		}
	}
	object, begun := a.Object, t.world.Now()
	for i, patch := range a.Patches {
		if i > 0 {
			t.pause()
		}
		r := t.patchOf(object, patch, false)
		r.Begun = begun
		n, err := t.send(r)
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
		if pod := t.world.MountingPod(a.Object, a.ForPod); pod != "" {
			return progress.ClaimMounted(sentence(a), pod)
		}
	}
	if _, err := t.send(t.deletion(a.Object, a.Object)); err != nil {
		return progress.OutcomeOf(err)
	}
	for _, then := range a.Dependents {
		t.pause()
		if t.world.MountingPod(then, "") != "" {
			continue
		}
		planned := then.DeepCopyObject().(action.Object)
		planned.SetResourceVersion("") // what goes along is deleted in any version
		if _, err := t.send(t.deletion(then, planned)); err != nil && !apierrors.IsNotFound(err) {
			return progress.OutcomeOf(err)
		}
	}
	return progress.Outcome{State: progress.Done}
}

// mayAdopt looks at the owners as they are now: one that is gone or going must not take anything.
func (t *attempt) mayAdopt(a *action.Action) error {
	for _, patch := range a.Patches {
		n, err := cluster.Apply(a.Object, patch)
		if err != nil {
			return err
		}
		for _, ref := range n.GetOwnerReferences() {
			owner := t.world.Owner(ref, a.Object.GetNamespace())
			if owner == nil || owner.GetDeletionTimestamp() != nil {
				return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(ref.Kind)}, ref.Name)
			}
		}
	}
	return nil
}

func (t *attempt) create(a *action.Action) progress.Outcome {
	for _, first := range a.Prerequisites {
		if _, err := t.send(t.creation(first, false)); err != nil && !apierrors.IsAlreadyExists(err) {
			return progress.OutcomeOf(err)
		}
		t.pause()
	}
	created, err := t.send(t.creation(a.Object, false))
	if found := t.world.Latest(a.Object); apierrors.IsAlreadyExists(err) && found != nil {
		return collision(a, err, found)
	}
	r := progress.OutcomeOf(err)
	r.Object = created
	return r
}

// collision is the outcome where an object already has the name.
func collision(a *action.Action, exists error, found action.Object) progress.Outcome {
	return progress.NameTaken(sentence(a), exists, found, cluster.ControllerOf(a.Object))
}

// isMalformed says that no server ever takes the write.
func isMalformed(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnsupportedMediaType(err)
}
