package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// explain tells the user what keeps the set from what it wants, once: as long as condition Progressing gives the reason
// already, nothing is told again.
func explain(p *pass) {
	s := p.progress(p.plan)
	n := action.Notice{Type: corev1.EventTypeNormal, Reason: s.Reason, Note: s.Message, WithStatus: true}
	switch s.Reason {
	case v1beta1.ReasonInvalidSpec:
		n.Type = corev1.EventTypeWarning
		if p.selectsAll() {
			n.Reason = EventSelectsAll
		}
	case v1beta1.ReasonBlockedByUnavailableNodes:
		n.Note += p.firstTrouble()
	case v1beta1.ReasonBlockedByPreDeleteHook:
	default:
		return
	}
	if old := conditions.Get(p.Set.Status.Conditions, v1beta1.DaemonSetProgressing); old == nil || old.Reason != s.Reason {
		p.plan.Notices = append(p.plan.Notices, n)
	}
}
