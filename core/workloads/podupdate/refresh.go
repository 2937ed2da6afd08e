package podupdate

import (
	"fmt"
	"slices"
	"time"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/inplace/completion"
	"github.com/flotilla-project/flotilla/core/pods/inplace/record"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Refreshed is the result of Refresh.
type Refreshed struct {
	// Action is the write that brings the pod on; nil when there is none.
	Action *action.Action
	// Held is the write that brings the pod on and waits because it was refused; nil when there is none.
	Held *action.Action
	// Updating is true if an update in place is not complete, though the pod may be in service all the while.
	Updating bool
}

// Refresh continues the changes of a pod that have begun: an update in place, its readiness gates, its lifecycle state.
// A pod in PreparingUpdate that is at the wanted revision already goes back. The reason why the pod waits becomes a wait
// of the plan.
func (w *Workload) Refresh(o podstate.State, wanted bool) Refreshed {
	c := w.Change(o.Pod)
	lifecycle.SetInitialReadiness(c)
	progress := w.continueUpdate(o, c, wanted)
	w.Plan.RequeueWithin(progress.RequeueAfter)
	if !progress.Complete && progress.Reason != "" {
		w.Plan.Wait(progress.Reason, o.Pod.Name, "%s", progress.Message)
	}
	lifecycle.Refresh(c, w.Lifecycle, progress.Complete || progress.Serving)
	if wanted {
		lifecycle.CancelUpdate(c, w.Lifecycle)
	}
	if w.MissingLabels != nil {
		setLabels(c, w.MissingLabels(o))
	}
	found := Refreshed{Updating: !progress.Complete}
	if c.Empty() {
		w.explainHook(o)
		return found
	}
	a := w.refreshing(o, c, progress)
	if a.Verb == action.UpdateInPlace || staysOut(c) {
		if back, waits := w.awaits(o, &a); waits || w.comesBack(o) {
			if found.Action = back; back == nil {
				found.Held = &a
			}
			return found
		}
	}
	for k := range a.Patches {
		a.Patches[k].AnyVersion = isNew(o) && !w.passesPreNormal(o, c) && a.Patches[k].Subresource == "status"
	}
	found.Action = &a
	return found
}

// continueUpdate continues the update in place of the pod, and returns how far it is.
func (w *Workload) continueUpdate(o podstate.State, c *action.PodChange, wanted bool) completion.Progress {
	progress, lost := w.takeResizeBack(o, c, wanted)
	if !lost {
		progress = inplace.Refresh(c, w.Revisions.options)
	}
	if progress.Serving && w.resizedByOthers(o) {
		progress = completion.Progress{Complete: true}
	}
	if progress.Reason == completion.ReasonUnreadable {
		w.restartUpdate(o, c)
	}
	if progress.AgentMissing && w.Policy == InPlaceOnly {
		inplace.ServeAsIs(c, w.Revisions.options)
	}
	return progress
}

// refreshing is the action that writes the change. All that an update writes is one purpose, whatever it is, so that one
// that is refused and the one that takes the pod out of service for it again are known to belong together.
func (w *Workload) refreshing(o podstate.State, c *action.PodChange, progress completion.Progress) action.Action {
	a := changed(c, "Refresh", describe(o, c))
	if leavesService(c) {
		a.LaterPatches = slices.Concat(w.onceOut(o, inplace.BeginGrace), w.onceOut(o, inplace.Next))
		a.LaterPatches = withResizes(a.LaterPatches, w.onceOut(o, inplace.NextResizes))
		a.DryRun = slices.ContainsFunc(a.LaterPatches, resizes)
	}
	if len(a.LaterPatches) > 0 || progress.Reason == completion.ReasonBatch || record.IsPlanned(o.Pod) {
		a.Verb = action.UpdateInPlace
	}
	if a.Verb == action.UpdateInPlace {
		a.Revision = o.Revision
		a.Event = &action.Event{Failed: EventInPlaceFailed} // an event has reported that it has begun
	}
	return a
}

// awaits reports whether the next containers of the pod have to wait because they, or the like of them, were refused;
// back takes the pod into service for that time, where it is out of it and can come back. If only the like of them was
// refused, to the pod for another revision or to another pod, or the pod has met nothing but conflicts, they may be accepted.
func (w *Workload) awaits(o podstate.State, next *action.Action) (back *action.Action, waits bool) {
	refused := w.Plan.WasRefusedFor(next)
	if refused && !w.Plan.Transient(next) || w.Plan.Pause(next) > maxWaitOutOfService {
		back = w.returnToService(o)
	}
	return back, back != nil || w.Plan.WasRefused(next) && !w.Plan.MayTry(next, nil)
}

// comesBack reports whether the pod was taken back into service a moment ago, and its kubelet is about to report it ready:
// containers that were changed now would be reported ready while they stop.
func (w *Workload) comesBack(o podstate.State) bool {
	left := podstate.ReadyIn(o.Pod, w.Now)
	w.Plan.RequeueWithin(left)
	return left > 0
}

// maxWaitOutOfService is how long a pod waits out of service for its next containers because the server refuses that to
// another pod, or conflicts meet it. Short server errors are over by then.
const maxWaitOutOfService = 10 * time.Second

// returnToService takes a pod back into service if the server refuses, or may refuse, its next containers; nil when it
// serves already or cannot.
func (w *Workload) returnToService(o podstate.State) *action.Action {
	c := w.Change(o.Pod)
	inplace.PutIntoService(c, w.Revisions.options)
	if c.Empty() {
		return nil
	}
	a := changed(c, "Serve", "the next step of its update is rejected")
	return &a
}

// takeResizeBack gives the pod the resources of its own revision back where an update to another one has resized it, was
// not recorded and does not come again: the pod is at the wanted revision, or the time for it is over. It reports whether
// there is such a resize.
func (w *Workload) takeResizeBack(o podstate.State, c *action.PodChange, wanted bool) (progress completion.Progress, lost bool) {
	if len(podstate.ResizesForOthers(o.Pod)) == 0 {
		return progress, false
	}
	own := w.Revisions.withHash(o.Revision)
	if own == nil {
		return progress, false
	}
	containers, wait := inplace.UnrecordedResize(o.Pod, own.Template, w.Revisions.options, w.Now)
	switch {
	case len(containers) == 0:
		return progress, false
	case !wanted && wait > 0:
		w.Plan.RequeueWithin(wait)
		return progress, false
	}
	w.restartUpdate(o, c)
	return completion.Progress{
		Reason: completion.ReasonBatch, Message: fmt.Sprintf("the resources of containers %v go back to revision %s", containers, o.Revision),
	}, true
}

// restartUpdate repeats the update to the pod's own revision when the record of it cannot be read, and then compares the
// whole pod with the template, or when resources are to be set back. Containers that it stops have the grace period of
// every update, or what is left of the one that the pod is in.
func (w *Workload) restartUpdate(o podstate.State, c *action.PodChange) {
	own := w.Revisions.withHash(o.Revision)
	if u, err := inplace.Diff(own, own, w.Revisions.options); err == nil {
		u.Begin(c, w.GraceSeconds)
	}
}

// isNew reports whether the pod gets its first conditions. They are right whatever its kubelet reports in
// the meantime, and it reports a good deal just then. Kinds without preNormal hooks create pods without a state.
func isNew(o podstate.State) bool {
	state := o.Pod.Labels[contract.LifecycleStateLabel]
	return (state == contract.LifecyclePreparingNormal || state == "" && podstate.Condition(o.Pod, contract.KruisePodReady) == nil) &&
		podstate.Condition(o.Pod, contract.InPlaceUpdateReady) == nil
}

// passesPreNormal reports whether the change lets the pod pass its preNormal hook. That is right only while the pod has the
// labels and finalizers that the hook was seen with.
func (w *Workload) passesPreNormal(o podstate.State, c *action.PodChange) bool {
	return w.Lifecycle != nil && w.Lifecycle.PreNormal != nil &&
		o.Lifecycle == contract.LifecyclePreparingNormal && c.Label(contract.LifecycleStateLabel) != contract.LifecyclePreparingNormal
}

// describe names the change of a refresh in a few words.
func describe(o podstate.State, c *action.PodChange) string {
	if state := c.Label(contract.LifecycleStateLabel); state != "" && state != o.Lifecycle {
		return o.Lifecycle + " to " + state
	}
	return "in " + o.Lifecycle
}

// explainHook records which hook holds the pod.
func (w *Workload) explainHook(o podstate.State) {
	l := w.Lifecycle
	if l == nil {
		return
	}
	switch o.Lifecycle {
	case contract.LifecyclePreparingNormal:
		if l.PreNormal != nil && o.Assigned {
			w.Plan.Wait(WaitPreNormalHook, o.Pod.Name, "the pod waits for hook preNormal: it still lacks labels or finalizers of the hook")
		}
	case contract.LifecyclePreparingUpdate:
		w.Plan.Wait(WaitInPlaceUpdateHook, o.Pod.Name, "the inPlaceUpdate hook holds the pod before its update")
	case contract.LifecycleUpdated:
		w.Plan.Wait(WaitInPlaceUpdateHook, o.Pod.Name, "the pod waits for hook inPlaceUpdate: it must get the labels and finalizers of the hook back after the update")
	case contract.LifecyclePreparingDelete:
		w.Plan.Wait(WaitPreDeleteHook, o.Pod.Name, "the preDelete hook holds the pod")
	}
}
