package podupdate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Workload holds the facts about a workload that one pass needs to move its pods.
type Workload struct {
	// Revisions are the revisions that it owns.
	Revisions *Revisions
	// Policy is the way pods get to another revision.
	Policy Policy
	// Lifecycle are its hooks; nil for none.
	Lifecycle *workload.Lifecycle
	// GraceSeconds is how long a pod is out of service before its containers are stopped in place.
	GraceSeconds int32
	// ResizeDeadlineSeconds is how long a pod waits for resources that its node puts off or can never give, until it needs
	// a new pod; nil means without end. It counts with policy InPlaceIfPossible only.
	ResizeDeadlineSeconds *int32
	// SameNode is true if a new pod comes to the node of the old one.
	SameNode bool
	// Labels are the labels that show the revision of a pod, by the revision's full name. An update in place sets them.
	Labels func(revision string) map[string]string
	// MissingLabels, if set, returns labels that the pod must have and does not; nil for none. Refresh writes them.
	MissingLabels func(o podstate.State) map[string]string
	// Now is the moment of the pass.
	Now time.Time
	// Plan gets the reasons why pods wait and the times to look at them again. Actions are not added to it.
	Plan *action.Plan
}

// Change starts a change of a pod in this pass.
func (w *Workload) Change(pod *corev1.Pod) *action.PodChange {
	return action.NewPodChange(pod, metav1.NewTime(w.Now))
}

// HasWrites reports whether the action has anything to write. The action of a pod that its hook already holds has
// nothing, and belongs into no plan.
func HasWrites(a action.Action) bool {
	return a.Verb == action.Create || a.Verb == action.Delete || len(a.Patches) > 0
}

// changed is the action that writes a change, named by the change's strongest write.
func changed(c *action.PodChange, reason, message string) action.Action {
	a := action.Action{
		Verb:         action.PatchMetadata,
		Object:       c.Pod,
		Independent:  true,
		OutOfService: podstate.HeldByUpdate(c.Pod),
		Patches:      c.Patches(),
		Reason:       reason,
		Message:      message,
	}
	for _, patch := range a.Patches {
		if patch.Subresource == "status" {
			a.Verb = action.PatchStatus
			continue
		}
		if _, ok := patch.Body["spec"]; ok {
			a.Verb = action.UpdateInPlace
			break
		}
	}
	return a
}

// deadline is the moment until which the pod may be taken out of service as one that is not in it: when time
// alone makes it available, another plan decides.
func (w *Workload) deadline(o podstate.State) time.Time {
	if o.AvailableIn == 0 {
		return time.Time{}
	}
	return w.Now.Add(o.AvailableIn)
}
