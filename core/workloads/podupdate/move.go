package podupdate

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Move is the way in which a pod gets on towards a revision in one plan. The set is closed.
type Move string

// The moves.
const (
	// MoveWaits means that the pod stays as it is. The plan has a wait with the reason.
	MoveWaits Move = "Waits"
	// MoveNeedsNewPod means that the pod has no way in place: its workload recreates it.
	MoveNeedsNewPod Move = "NeedsNewPod"
	// MoveDeferred means that the server has refused the write in place, and that its step holds it back.
	MoveDeferred Move = "Deferred"
	// MoveHeld means that hook inPlaceUpdate holds the pod already: there is nothing to write.
	MoveHeld Move = "Held"
	// MovePrepares means that the step has the write that brings the pod into PreparingUpdate, where the hook holds it.
	MovePrepares Move = "Prepares"
	// MoveUpdates means that the step has the write in place.
	MoveUpdates Move = "Updates"
)

// Move brings the pod on towards the target, as UpdatePath or a stricter rule of its workload found: in place by u, by a new pod
// if u is nil, or not at all if err gives the reason.
func (w *Workload) Move(step *action.Step, o podstate.State, target *appsv1.ControllerRevision, u *inplace.Update, err error) Move {
	switch {
	case err != nil:
		w.Plan.Wait(WaitReason(err), o.Pod.Name, "%s", err)
		return MoveWaits
	case u == nil:
		return MoveNeedsNewPod
	}
	a := w.UpdateInPlace(o, u, target)
	switch {
	case !HasWrites(a):
		return MoveHeld
	case !w.Plan.Try(step, a):
		return MoveDeferred
	case a.Verb != action.UpdateInPlace:
		return MovePrepares
	}
	return MoveUpdates
}
