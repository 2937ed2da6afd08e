package podupdate

import (
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// DeleteToRecreate is the action reason of the delete of a pod that makes way for one of another revision.
const DeleteToRecreate = "Recreate"

// DeleteReason is the reason why a pod is deleted.
type DeleteReason struct {
	// Reason is one word for machines, Message one sentence for people.
	Reason, Message string
	// Event is the event for the user about the deletion; nil for none. It is not sent for a pod that its hook holds.
	Event *action.Event
	// LabelsWhileHeld are labels for a pod that its hook holds; nil for none.
	LabelsWhileHeld map[string]string
}

// Delete deletes the pod, or brings it into PreparingDelete while the hook preDelete holds it: the action's verb shows
// which.
func (w *Workload) Delete(o podstate.State, why DeleteReason) action.Action {
	c := w.Change(o.Pod)
	if lifecycle.BeginDelete(c, w.Lifecycle) {
		return action.Action{
			Verb:         action.Delete,
			Object:       o.Pod,
			Independent:  true,
			OutOfService: podstate.HeldByUpdate(o.Pod),
			Reason:       why.Reason,
			Message:      why.Message,
			Event:        why.Event,
			Deadline:     w.deadline(o),
		}
	}
	setLabels(c, why.LabelsWhileHeld)
	a := changed(c, why.Reason, why.Message+"; the preDelete hook holds it")
	a.Deadline = w.deadline(o)
	return a
}

// CancelDelete takes a pod back from PreparingDelete and reports whether it did. It cannot if the hook marks pods not
// ready.
func (w *Workload) CancelDelete(o podstate.State) (action.Action, bool) {
	c := w.Change(o.Pod)
	if !lifecycle.CancelDelete(c, w.Lifecycle) {
		return action.Action{}, false
	}
	return changed(c, "PreDeleteCancelled", "the pod is needed again"), true
}

// KeepInService takes a pod back from PreparingDelete to Normal, into service where its hook has taken it out of it. It
// is for workloads that take their pods back whatever their hook does.
func (w *Workload) KeepInService(o podstate.State) action.Action {
	return changed(w.backToNormal(o), "PreDeleteCancelled", "the pod is needed again")
}

// HasLetGo reports whether the pod is in PreparingUpdate or PreparingDelete and no hook holds it there.
func (w *Workload) HasLetGo(o podstate.State) bool {
	hooks := workload.Lifecycle{}
	if w.Lifecycle != nil {
		hooks = *w.Lifecycle
	}
	switch o.Lifecycle {
	case contract.LifecyclePreparingUpdate:
		return !lifecycle.Hooked(hooks.InPlaceUpdate, o.Pod)
	case contract.LifecyclePreparingDelete:
		return !lifecycle.Hooked(hooks.PreDelete, o.Pod)
	}
	return false
}

// Pause takes a pod back to Normal that its hook has released for an update that is paused.
func (w *Workload) Pause(o podstate.State) action.Action {
	return changed(w.backToNormal(o), "Paused", "its hook has released the pod, and the update is paused")
}

func (w *Workload) backToNormal(o podstate.State) *action.PodChange {
	c := w.Change(o.Pod)
	lifecycle.Set(c, contract.LifecycleNormal)
	if c.Label(contract.SpecifiedDeleteLabel) == contract.SpecifiedDeleteForUpdate {
		c.RemoveLabel(contract.SpecifiedDeleteLabel)
	}
	return c
}
