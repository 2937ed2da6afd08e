package retries

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// eventKey is an Event as the server counts it up: those of the same kind, reason and object are one, whatever they
// say.
type eventKey struct{ kind, reason, about string }

// countEventOf counts the Event of an action, in the way of package events.
func (j *Judge) countEventOf(r *progress.Outcome) {
	a := r.Action
	if a.Event == nil {
		return
	}
	e := eventKey{
		kind:   corev1.EventTypeWarning,
		reason: a.Event.Failed,
		about:  string(a.Object.GetUID()),
	}
	switch r.State {
	case progress.Done:
		delete(j.events, e) // what fails from now on is something new
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
		j.countEvent(e, name)
	}
}

// Notice counts the Event of a notice of the plan.
func (j *Judge) Notice(n action.Notice) {
	e := eventKey{kind: n.Type, reason: n.Reason}
	if n.Related != nil {
		e.about = string(n.Related.GetUID())
	}
	j.countEvent(e, "")
}

// countEvent counts an Event. The name of the object that it is about is empty where it means nothing.
func (j *Judge) countEvent(e eventKey, name string) {
	if len(j.refused) == 0 {
		return
	}
	t := tallyOf(j.events, e)
	if name != "" {
		t.names[name] = true
	}
	if most, tooMany := t.add(j.world.Now()); tooMany {
		j.world.Violate("quiet under refusal: Event %s %s was told %d times in %s, at most %d", e.kind, e.reason, t.n, j.world.Now().Sub(t.begun), most)
	}
}
