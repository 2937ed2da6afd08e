package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Status is the next status of the set, counted from the pods as they were before the plan's writes.
func Status(s Snapshot, todo Plan, done action.Failures) v1beta1.DaemonSetStatus {
	p := newPass(s)
	status := *s.Set.Status.DeepCopy()
	status.ObservedGeneration = s.Set.Generation
	if s.Chosen.Update != nil {
		if status.UpdateRevision != p.updateHash() || status.UpdateStartTime == nil {
			status.UpdateStartTime = &metav1.Time{Time: s.Now.Truncate(time.Second)}
		}
		status.UpdateRevision = p.updateHash()
		status.CollisionCount = &s.Chosen.CollisionCount
	}
	status.CurrentRevision = p.current
	p.countInto(&status)
	if !done.NoProgress || s.Set.Status.ObservedGeneration != s.Set.Generation {
		status.Conditions = p.nextConditions(status, todo, done, metav1.NewTime(s.Now))
	}
	return status
}

// countInto counts nodes. Of several pods on a node the oldest counts; terminating ones count too, unless they have
// ended.
func (p *pass) countInto(status *v1beta1.DaemonSetStatus) {
	status.DesiredNumberScheduled = int32(p.desired)
	status.CurrentNumberScheduled = 0
	status.NumberMisscheduled = 0
	status.NumberReady = 0
	status.NumberAvailable = 0
	status.UpdatedNumberScheduled = 0
	status.NumberUnreadyNodes, status.NumberSkippedNodes = 0, 0
	for i := range p.places {
		l := &p.places[i]
		o := l.oldest()
		if l.node == nil || !l.ShouldRun && o == nil {
			continue
		}
		available := o != nil && p.isAvailable(o)
		if _, ready := UnreadySince(l.node); !ready {
			status.NumberUnreadyNodes++
		}
		if !available && p.skips(l) {
			status.NumberSkippedNodes++
		}
		if !l.ShouldRun {
			status.NumberMisscheduled++
			continue
		}
		if o == nil {
			continue
		}
		status.CurrentNumberScheduled++
		if o.Ready {
			status.NumberReady++
		}
		if available {
			status.NumberAvailable++
		}
		if o.updated {
			status.UpdatedNumberScheduled++
		}
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
}

// oldest is the pod of the node that the status counts, or nil.
func (l *place) oldest() *pod {
	for _, o := range l.pods {
		if !o.foreign && (!o.Terminating || !o.finished) {
			return o
		}
	}
	return nil
}

// isAvailable reports whether the pod has been ready for minReadySeconds. It plays no part that its hook holds it: so
// does the built-in DaemonSet count.
func (p *pass) isAvailable(o *pod) bool {
	minReady := time.Duration(p.Set.Spec.MinReadySeconds) * time.Second
	return o.Ready && (minReady == 0 || !o.ReadySince.IsZero() && !o.ReadySince.Add(minReady).After(p.Now))
}
