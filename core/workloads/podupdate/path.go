package podupdate

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Policy is the way pods get to another revision, in the words of the field podUpdatePolicy.
type Policy string

// The policies. An empty one is ReCreate.
const (
	// ReCreate deletes the pod; the workload makes a new one.
	ReCreate Policy = "ReCreate"
	// InPlaceIfPossible updates the pod in place where the change allows that, and else recreates it.
	InPlaceIfPossible Policy = "InPlaceIfPossible"
	// InPlaceOnly never recreates.
	InPlaceOnly Policy = "InPlaceOnly"
)

// InPlace reports whether the policy updates pods in place at all.
func (p Policy) InPlace() bool { return p == InPlaceIfPossible || p == InPlaceOnly }

// NotInPlaceError means that policy InPlaceOnly leaves a pod no way to a revision.
type NotInPlaceError struct {
	// Pod is the pod's name.
	Pod string
	// Cause is why the update is not possible in place.
	Cause error
}

// Error names the pod and the policy.
func (e *NotInPlaceError) Error() string {
	return fmt.Sprintf("pod %s cannot be updated in place (podUpdatePolicy InPlaceOnly): %v", e.Pod, e.Cause)
}

// Unwrap is the cause.
func (e *NotInPlaceError) Unwrap() error { return e.Cause }

// WaitReason is the reason of a wait for an error of UpdatePath.
func WaitReason(err error) string {
	if _, ok := errors.AsType[*inplace.NodeAgentMissingError](err); ok {
		return WaitNodeAgentMissing
	}
	return WaitNotInPlace
}

// agentPatience is how long a container may have run before a node agent that reports nothing about it counts as
// missing. An agent that is there takes a few seconds.
const agentPatience = 30 * time.Second

// UpdatePath returns the in-place update that brings the pod to the target under the policy, or nil if it needs a new
// pod, be it because it has waited for its resources to the deadline. The error is a *NotInPlaceError, or an
// *inplace.NodeAgentMissingError for a moment in which a node agent may yet report a container.
func (w *Workload) UpdatePath(o podstate.State, target *appsv1.ControllerRevision) (*inplace.Update, error) {
	if !w.Policy.InPlace() || w.waitedInVain(o, target) {
		return nil, nil
	}
	u, err := w.inPlace(o, target)
	if err != nil && w.Policy == InPlaceOnly {
		return nil, &NotInPlaceError{Pod: o.Pod.Name, Cause: err}
	}
	if w.mayHearOfAgent(err) {
		return nil, err
	}
	return u, nil
}

// mayHearOfAgent reports whether the error is that no node agent knows a container which was started only a moment ago,
// and has the plan look again when that is over. However far the two clocks differ, it lasts twice agentPatience at
// most.
func (w *Workload) mayHearOfAgent(err error) bool {
	missing, ok := errors.AsType[*inplace.NodeAgentMissingError](err)
	if !ok || missing.StartedAt.IsZero() {
		return false
	}
	ran := w.Now.Sub(missing.StartedAt)
	if ran.Abs() >= agentPatience {
		return false
	}
	w.Plan.RequeueWithin(agentPatience - ran)
	return true
}

// NeedsNewPod reports whether the pod cannot get to the target in place, whether or not the policy lets it be
// recreated.
func (w *Workload) NeedsNewPod(o podstate.State, target *appsv1.ControllerRevision) bool {
	if !w.Policy.InPlace() || w.waitedInVain(o, target) {
		return true
	}
	_, err := w.inPlace(o, target)
	return err != nil && !w.mayHearOfAgent(err)
}

func (w *Workload) inPlace(o podstate.State, target *appsv1.ControllerRevision) (*inplace.Update, error) {
	u, err := w.Revisions.Diff(o.Revision, target)
	if err == nil {
		err = u.Check(o.Pod)
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}
