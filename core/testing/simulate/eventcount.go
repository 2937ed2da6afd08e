package simulate

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// eventKey is an Event as the server counts it up: those of the same kind, reason and object are one, whatever they
// say.
type eventKey struct{ kind, reason, about string }

// tell counts the Event of an action, in the way of package events.
func (o *Operator) tell(r *progress.Outcome) {
	a := r.Action
	if a.Event == nil {
		return
	}
	e := eventKey{kind: corev1.EventTypeWarning, reason: a.Event.Failed, about: string(a.Object.GetUID())}
	switch r.State {
	case progress.Done:
		delete(o.quiet.events, e) // what fails from now on is something new
		e.kind, e.reason = corev1.EventTypeNormal, a.Event.Succeeded
		if a.Verb == action.Create {
			return // each of a new object
		}
	case progress.Stale:
		return
	case progress.Blocked, progress.Failed: // a warning
	}
	name := a.Object.GetName()
	if a.GeneratedName {
		name = ""
	}
	if e.reason != "" {
		o.quiet.countEvent(o.world, e, name)
	}
}

// notice counts the Event of a notice of the plan.
func (o *Operator) notice(n action.Notice) {
	e := eventKey{kind: n.Type, reason: n.Reason}
	if n.Related != nil {
		e.about = string(n.Related.GetUID())
	}
	o.quiet.countEvent(o.world, e, "")
}
