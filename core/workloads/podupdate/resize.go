package podupdate

import (
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Overdue reports whether the pod needs a new one in its place because it waits in vain: for resources, or for a node agent
// that is to restart its containers.
func (w *Workload) Overdue(o podstate.State) bool {
	return w.ResizeOverdue(o) || w.agentMissing(o)
}

func (w *Workload) agentMissing(o podstate.State) bool {
	return w.Policy != InPlaceOnly && inplace.AgentMissing(o.Pod, w.Now, w.Revisions.options)
}

// ResizeOverdue reports whether the pod does not get resources of its own revision in place any more. A container with
// raised limits is down, or the pod has waited to the deadline for them, or for the rest of its update, because its
// node puts them off, can never give them or fails to. It needs a new pod, then; the plan looks at others again when
// their deadline is over.
func (w *Workload) ResizeOverdue(o podstate.State) bool {
	if w.Policy != InPlaceIfPossible {
		return false
	}
	stopped := w.stoppedResize(o) != ""
	if !w.givesUpResizes() {
		return stopped
	}
	overdue := w.nodeTooSmall(o, o.Revision)
	if own := w.Revisions.withHash(o.Revision); own != nil {
		overdue = w.isOver(inplace.PendingResizeSince(o.Pod, own.Template, w.Revisions.options)) || overdue
	}
	return overdue || stopped
}

// resizedByOthers reports whether another client, such as a vertical autoscaler, has asked for the resources that the
// pod waits for.
func (w *Workload) resizedByOthers(o podstate.State) bool {
	own := w.Revisions.withHash(o.Revision)
	return own != nil && inplace.ResizedByOthers(o.Pod, own.Template)
}

// stoppedResize names a container that is down before it got the limits of the pod's own revision, or is empty.
// A pod that leaves for it is judged as of the moment at which it began to, however long its hook holds it.
func (w *Workload) stoppedResize(o podstate.State) string {
	at := w.Now
	if o.Lifecycle == contract.LifecyclePreparingDelete {
		if began, err := time.Parse(time.RFC3339, o.Pod.Annotations[contract.LifecycleTimestampAnnotation]); err == nil && began.Before(at) {
			at = began
		}
	}
	return inplace.StoppedResize(o.Pod, w.Revisions.options, metav1.NewTime(at))
}

// waitedInVain reports whether an update in place to the target is given up: the server has refused it to the deadline, the pod is
// there already and is overdue, or limits that an earlier update has raised a moment ago never reached the pod: its next
// containers would run inside the old ones.
func (w *Workload) waitedInVain(o podstate.State, target *appsv1.ControllerRevision) bool {
	switch {
	case w.givesUpResizes() && w.nodeTooSmall(o, podstate.ShortHash(target.Name)):
		return true
	case w.Revisions.HasTemplate(o.Revision, target):
		return w.Overdue(o)
	}
	return w.Policy == InPlaceIfPossible && w.stoppedResize(o) != ""
}

// WhyNewPod is one sentence about the reason why the pod gets to the target by a new one.
func (w *Workload) WhyNewPod(o podstate.State, target *appsv1.ControllerRevision) string {
	hash := podstate.ShortHash(target.Name)
	switch {
	case w.Revisions.HasTemplate(o.Revision, target) && w.agentMissing(o):
		return "the node agent has not restarted its containers"
	case w.waitedInVain(o, target):
		if container := w.stoppedResize(o); container != "" {
			return "container " + container + " is not running, and its next run may not get the limits of revision " + hash
		}
		return "its node failed to allocate the resources of revision " + hash + " in time"
	}
	text := "revision " + hash + " needs a new pod"
	if u, err := w.Revisions.Diff(o.Revision, target); err == nil && w.Policy.InPlace() {
		if cause, ok := errors.AsType[*inplace.NotPossibleError](u.Check(o.Pod)); ok {
			text += ": " + cause.Error()
		}
	}
	return text
}

func (w *Workload) givesUpResizes() bool {
	return w.ResizeDeadlineSeconds != nil && w.Policy == InPlaceIfPossible
}

// nodeTooSmall reports whether the server has refused to bring the pod to the revision, to the deadline, because its
// node is too small. A new pod on the same node would not be better off.
func (w *Workload) nodeTooSmall(o podstate.State, revision string) bool {
	return !w.SameNode && w.isOver(w.Plan.Refusals.NodeTooSmallSince(o.Pod, revision))
}

// isOver reports whether the deadline of a wait that began at the moment is over, and otherwise has the plan look again
// then. A zero moment is no wait.
func (w *Workload) isOver(since time.Time) bool {
	if since.IsZero() {
		return false
	}
	left := since.Add(time.Duration(*w.ResizeDeadlineSeconds) * time.Second).Sub(w.Now)
	w.Plan.RequeueWithin(left)
	return left <= 0
}
