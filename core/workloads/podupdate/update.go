package podupdate

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// UpdateInPlace begins the update of the pod to the target, or brings it into PreparingUpdate while the
// hook inPlaceUpdate holds it. An update that stops no container leaves the pod in its state.
func (w *Workload) UpdateInPlace(o podstate.State, u *inplace.Update, target *appsv1.ControllerRevision) action.Action {
	c := w.Change(o.Pod)
	text := "revision " + podstate.ShortHash(target.Name)
	if !lifecycle.BeginUpdate(c, w.Lifecycle) {
		a := changed(c, WaitInPlaceUpdateHook, text+"; the inPlaceUpdate hook holds it")
		a.Deadline = w.deadline(o)
		return a
	}
	u.Begin(c, w.GraceSeconds)
	later := w.afterGrace(o, u)
	setLabels(c, w.Labels(target.Name))
	if !u.Interrupts(o.Pod) {
		lifecycle.Refresh(c, w.Lifecycle, true)
	}
	return action.Action{
		Verb: action.UpdateInPlace, Object: o.Pod, Patches: c.Patches(), LaterPatches: later, Reason: "Update", Message: text, Deadline: w.deadline(o),
		Revision: podstate.ShortHash(target.Name),
		Event: &action.Event{
			Succeeded: EventInPlace, Failed: EventInPlaceFailed,
			Note: fmt.Sprintf("successfully update pod %s in-place(revision %s)", o.Pod.Name, target.Name),
		},
	}
}

// afterGrace are the patches that the update comes to once its grace period is over; nil without one.
func (w *Workload) afterGrace(o podstate.State, u *inplace.Update) []action.Patch {
	if w.GraceSeconds == 0 {
		return nil
	}
	c := w.Change(o.Pod)
	u.Begin(c, 0)
	return slices.DeleteFunc(c.Patches(), func(p action.Patch) bool { return p.Subresource == "status" })
}

func setLabels(c *action.PodChange, labels map[string]string) {
	for key, value := range labels {
		c.SetLabel(key, value)
	}
}

// CancelUpdate takes a pod out of PreparingUpdate whose update is no longer wanted. Of a pod in another state
// it writes nothing.
func (w *Workload) CancelUpdate(o podstate.State) action.Action {
	c := w.Change(o.Pod)
	lifecycle.CancelUpdate(c, w.Lifecycle)
	return changed(c, "NoLongerWanted", "its update is no longer wanted")
}
