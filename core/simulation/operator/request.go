package operator

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// Request is one write on its way to the server.
type Request struct {
	// Action is the action that it is a part of.
	Action *action.Action
	// Kind is the kind of write, such as "patch spec of Pod". Workload stands for every kind that a workload does not own.
	Kind string
	// Verb is Create, Delete or the verb of an action that patches.
	Verb action.Verb
	// Object is what is written, in the version that the plan was made from.
	Object action.Object
	// Subresource is that of a patch.
	Subresource string
	// DryRun says that nothing is to be stored.
	DryRun bool
	// Begun is when the first patch of its action was sent: an action that begins before its deadline is completed. It is
	// zero for a request that is no patch, and for dry runs.
	Begun time.Time

	write func() (action.Object, error)
}

// Write has the server carry out the request, past the operator that sends it.
func (r Request) Write() (action.Object, error) { return r.write() }

// kindOfPatch returns the kind of write that a patch is.
func kindOfPatch(o action.Object, patch action.Patch) string {
	part := patch.Subresource
	meta, _ := patch.Body["metadata"].(map[string]any)
	switch {
	case part != "":
	case patch.Body["spec"] != nil:
		part = "spec"
	case patch.Body["revision"] != nil:
		part = "number"
	case meta["ownerReferences"] != nil:
		part = "owners"
	default:
		part = "metadata"
	}
	return "patch " + part + " of " + cluster.PlainKind(o)
}

// dryRun sends dry runs if the action asks for them, as package execute does.
func (t *attempt) dryRun(a *action.Action) progress.Outcome {
	if !a.DryRun {
		return progress.Outcome{State: progress.Done}
	}
	if a.Verb == action.Create && len(a.Prerequisites) > 0 {
		_, err := t.send(t.creation(a.Object, true))
		t.pause()
		if found := t.world.Latest(a.Object); apierrors.IsAlreadyExists(err) && found != nil {
			return collision(a, err, found)
		}
		return progress.DryRunOutcome(err)
	}
	for _, patch := range a.DryRunPatches() {
		_, err := t.send(t.patchOf(a.Object, patch, true))
		t.pause()
		if err != nil {
			return progress.DryRunOutcome(err)
		}
	}
	return progress.Outcome{State: progress.Done}
}

func (t *attempt) creation(o action.Object, dryRun bool) Request {
	return Request{
		Action: t.action,
		Kind:   "create " + cluster.PlainKind(o),
		Verb:   action.Create,
		Object: o,
		DryRun: dryRun,
		write:  func() (action.Object, error) { return t.world.Create(t.settings.Actor, o) },
	}
}

func (t *attempt) patchOf(o action.Object, patch action.Patch, dryRun bool) Request {
	return Request{
		Action:      t.action,
		Kind:        kindOfPatch(o, patch),
		Verb:        t.action.Verb,
		Object:      o,
		Subresource: patch.Subresource,
		DryRun:      dryRun,
		write:       func() (action.Object, error) { return t.world.Patch(t.settings.Actor, o, patch) },
	}
}

// deletion deletes an object in the version that the plan was made from.
func (t *attempt) deletion(o, planned action.Object) Request {
	return Request{
		Action: t.action,
		Kind:   "delete " + cluster.PlainKind(o),
		Verb:   action.Delete,
		Object: o,
		write:  func() (action.Object, error) { return o, t.world.Delete(t.settings.Actor, planned) },
	}
}

// Deliver has the server carry out a request that nothing stops.
func (o *Operator) Deliver(r Request) (action.Object, error) {
	if r.DryRun {
		return r.Object, o.world.DryRun(r.write)
	}
	noops := o.world.NoOps(o.settings.Actor)
	n, err := r.write()
	if err != nil {
		if isMalformed(err) {
			o.world.Violate("a write that no server takes: %v", err)
		}
		return nil, err
	}
	if o.world.NoOps(o.settings.Actor) > noops {
		o.world.Violate("a write that changes nothing: %s %s", cluster.KindOf(r.Object), r.Object.GetName())
	}
	o.writes++
	return n, nil
}

// send sends a request. An operator that died sends no more.
func (o *Operator) send(r Request) (action.Object, error) {
	if o.dead {
		return nil, ErrCrash
	}
	if o.settings.Send == nil {
		return o.Deliver(r)
	}
	n, err := o.settings.Send(r)
	o.dead = o.dead || errors.Is(err, ErrCrash)
	return n, err
}
