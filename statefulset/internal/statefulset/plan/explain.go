package plan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// explain reports to the user the pods that the set waits for, once: while condition Progressing shows them already,
// it does not report again. That pods take their time to become available is reported only once it is long.
func explain(p *pass) {
	s := p.progress(p.plan)
	n := action.Notice{
		Type:       corev1.EventTypeWarning,
		Reason:     s.Reason,
		Note:       s.Message,
		WithStatus: true,
	}
	wait := p.mainWait(p.plan)
	switch {
	case p.plan.Err != nil:
	case wait == nil || blockedReason(wait.Reason) != s.Reason || s.Reason == v1beta1.ReasonRollingOut:
		return
	case s.Reason == action.WaitBudget: // its words change with other pods, and the budget sends events of its own
		return
	case s.Reason == v1beta1.ReasonBlockedByUnavailablePods && !strings.HasSuffix(s.Message, overdueSuffix):
		return
	default:
		n.Type, n.Reason = p.eventOf(wait)
		if s.Reason == v1beta1.ReasonBlockedByUnavailablePods {
			n.Note += p.firstTrouble()
		}
	}
	if !p.known(s) {
		p.plan.Notices = append(p.plan.Notices, n)
	}
}

// known reports whether condition Progressing shows the summary already, or the same with other words.
func (p *pass) known(s conditions.Summary) bool {
	old := conditions.Get(p.Set.Status.Conditions, v1beta1.StatefulSetProgressing)
	switch {
	case old == nil || old.Reason != s.Reason:
		return false
	case old.Message == s.Message:
		return true
	case s.Reason == v1beta1.ReasonBlockedByUnavailablePods:
		return strings.HasSuffix(old.Message, overdueSuffix)
	case s.Reason == podupdate.WaitNotInPlace: // the named pod changes while the pods end what they had begun
		return p.Chosen.Update != nil && p.Chosen.Update.Name == p.Set.Status.UpdateRevision
	}
	return false
}

// eventOf is the type and the reason of the event that reports a wait.
func (p *pass) eventOf(w *action.Wait) (kind, reason string) {
	switch w.Reason {
	case WaitClaimGoing, WaitClaimTemplateRemoved:
		return corev1.EventTypeWarning, EventCreateFailed
	case podupdate.WaitNotInPlace:
		return corev1.EventTypeWarning, podupdate.EventInPlaceFailed
	case WaitResizeFailed:
		for _, o := range p.targets {
			if t := o.claims.problem; t != nil && t.claim == w.Object {
				return corev1.EventTypeWarning, t.event
			}
		}
	case WaitStaleClaim, WaitResize:
		return corev1.EventTypeNormal, w.Reason
	}
	return corev1.EventTypeNormal, blockedReason(w.Reason)
}
