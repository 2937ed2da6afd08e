package podupdate

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
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
	var later []action.Patch
	if c.Annotation(contract.InPlaceUpdateGraceAnnotation) != "" {
		later = w.onceOut(o, func(c *action.PodChange) { u.Begin(c, 0) })
		if w.GraceSeconds > 0 { // its beginning is written, too
			later = slices.Concat(w.onceOut(o, func(c *action.PodChange) { u.Begin(c, w.GraceSeconds) }), later)
		}
	}
	if len(later) > 0 {
		later = withResizes(later, w.onceOut(o, u.Resize))
	}
	setLabels(c, w.Labels(target.Name))
	if !u.Interrupts(o.Pod) {
		lifecycle.Refresh(c, w.Lifecycle, true)
	}
	patches, follow := c.Patches(), later
	if leavesService(c) { // a pod that is not reported ready is resized at once, and may be about to be ready
		follow = slices.Concat(patches, later)
	}
	return action.Action{
		Verb:         action.UpdateInPlace,
		Object:       o.Pod,
		Independent:  true,
		OutOfService: podstate.HeldByUpdate(o.Pod),
		Patches:      patches,
		LaterPatches: later,
		Reason:       "Update",
		Message:      text,
		Deadline:     w.deadline(o),
		DryRun:       slices.ContainsFunc(follow, resizes), // a node that is too small keeps its pod as it is, in service
		Revision:     podstate.ShortHash(target.Name),
		Event: &action.Event{
			Succeeded: EventInPlace,
			Failed:    EventInPlaceFailed,
			Note:      fmt.Sprintf("successfully update pod %s in-place(revision %s)", o.Pod.Name, target.Name),
		},
	}
}

func resizes(p action.Patch) bool { return p.Subresource == "resize" }

// withResizes replaces the resizes of the next batch by the resizes of all batches.
func withResizes(later, all []action.Patch) []action.Patch {
	return slices.Concat(slices.DeleteFunc(later, resizes), all)
}

// onceOut are the patches that an update comes to once the readiness gate is closed and the kubelet has reported the pod
// not ready.
func (w *Workload) onceOut(o podstate.State, next func(*action.PodChange)) []action.Patch {
	out := o.Pod.DeepCopy()
	if ready := podstate.Condition(out, corev1.PodReady); ready != nil {
		ready.Status = corev1.ConditionFalse
	}
	if closed := podstate.Condition(out, contract.InPlaceUpdateReady); closed != nil {
		closed.Status = corev1.ConditionFalse
		closed.Reason = completion.ReasonStartUpdate
		closed.Message = ""
	}
	c := w.Change(out)
	next(c)
	return slices.DeleteFunc(c.Patches(), func(p action.Patch) bool { return p.Subresource == "status" })
}

// leavesService reports whether the change closes the readiness gate of a pod that has it open.
func leavesService(c *action.PodChange) bool {
	after := c.Condition(contract.InPlaceUpdateReady)
	return !podstate.HeldByUpdate(c.Pod) && after != nil && after.Status != corev1.ConditionTrue
}

// staysOut reports whether an update holds the pod out of service after the change.
func staysOut(c *action.PodChange) bool {
	after := c.Condition(contract.InPlaceUpdateReady)
	return podstate.HeldByUpdate(c.Pod) && after.Status != corev1.ConditionTrue
}

func setLabels(c *action.PodChange, labels map[string]string) {
	for key, value := range labels {
		c.SetLabel(key, value)
	}
}

// CancelUpdate takes a pod out of PreparingUpdate if its update is no longer wanted. For a pod in another state it
// writes nothing.
func (w *Workload) CancelUpdate(o podstate.State) action.Action {
	c := w.Change(o.Pod)
	lifecycle.CancelUpdate(c, w.Lifecycle)
	return changed(c, "NoLongerWanted", "its update is no longer wanted")
}
