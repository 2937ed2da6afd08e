package plan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/failures"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// explain reports to the user the causes that keep the set from its wanted state.
func explain(p *pass) {
	explainProgress(p)
	explainPlacement(p)
	explainPause(p)
}

// explainProgress reports condition Progressing, once: while the condition has the reason already, it does not report
// again.
func explainProgress(p *pass) {
	s := p.progress(p.plan)
	n := action.Notice{
		Type:       corev1.EventTypeNormal,
		Reason:     s.Reason,
		Note:       s.Message,
		WithStatus: true,
	}
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

// explainPlacement reports a pod for which its node has no room, in the scheduler's words, once: when condition Ready
// begins to name it.
func explainPlacement(p *pass) {
	said := p.said()
	next := ""
	for i := range p.pods {
		o := &p.pods[i]
		scheduled := podstate.Condition(o.Pod, corev1.PodScheduled)
		if podstate.TroubleOf(o.Pod).Reason != corev1.PodReasonUnschedulable || scheduled == nil {
			continue
		}
		if next == "" {
			status := p.Set.Status
			p.countInto(&status)
			next = p.summary(status, p.plan, action.Failures{}).Message
		}
		trouble := podstate.FirstTrouble(1, func(int) (*podstate.State, bool) { return p.state(i) })
		if strings.Contains(next, trouble) && !strings.Contains(said, trouble) {
			p.plan.Notices = append(p.plan.Notices, action.Notice{
				Type:       corev1.EventTypeWarning,
				Reason:     EventPlacementFailed,
				Related:    o.Pod,
				WithStatus: true,
				Note:       fmt.Sprintf("Pod %s cannot be scheduled to node %s: %s", o.Pod.Name, eligibility.NodeOf(o.Pod), scheduled.Message),
			})
		}
	}
}

// explainPause reports a failed pod that is replaced later, and when, once: when condition Ready begins to show it.
func explainPause(p *pass) {
	w := p.mainWait(p.plan)
	if w == nil || w.Reason != failures.WaitReason || strings.Contains(p.said(), w.String()) {
		return
	}
	for i := range p.pods {
		if o := &p.pods[i]; o.Pod.Name == w.Object {
			p.plan.Notices = append(p.plan.Notices, action.Notice{
				Type:       corev1.EventTypeWarning,
				Reason:     EventPodFailed,
				Related:    o.Pod,
				WithStatus: true,
				Note:       fmt.Sprintf("Pod %s failed: %s", o.Pod.Name, w.Message),
			})
		}
	}
}

// `said` is the message of condition Ready.
func (p *pass) said() string {
	if ready := conditions.Get(p.Set.Status.Conditions, conditions.Ready); ready != nil {
		return ready.Message
	}
	return ""
}
