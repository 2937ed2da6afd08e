package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// deletePod deletes the pod, or brings it into PreparingDelete while the preDelete hook holds it, and returns whether
// the pod goes. It adds nothing to the step when the pod is held already, or stays because the server refuses that.
func (p *pass) deletePod(step *action.Step, o *pod, reason, message string) (goes bool) {
	o.touched = true
	a := p.workload.Delete(o.State, podupdate.DeleteReason{
		Reason:  reason,
		Message: message,
		Event: &action.Event{
			Succeeded: EventDeleted,
			Failed:    EventDeleteFailed,
			Note:      "Deleted pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name + ": " + message,
		},
	})
	writes := podupdate.HasWrites(a)
	if writes && !p.plan.Try(step, a) {
		o.refused = true
		return false
	}
	if o.leaving = true; !writes {
		if !o.Active { // refresh reports the others
			p.plan.Wait(podupdate.WaitPreDeleteHook, o.Pod.Name, "the preDelete hook holds the pod, although it has ended")
		}
		return true
	}
	if l := p.Set.Spec.Lifecycle; a.Verb != action.Delete && l.PreDelete.MarkPodNotReady {
		p.noteMissingReadinessGate(o)
	}
	return true
}

// noteMissingReadinessGate reports that the pod stays in service though its hook wants it out of it.
func (p *pass) noteMissingReadinessGate(o *pod) {
	if !podstate.HasReadinessGate(o.Pod, contract.KruisePodReady) {
		p.plan.Notices = append(p.plan.Notices, action.Notice{
			Type:    corev1.EventTypeWarning,
			Reason:  EventGateMissing,
			Related: o.Pod,
			Note:    "markPodNotReady has no effect on Pod " + o.Pod.Name + ": it lacks readiness gate " + contract.KruisePodReady,
		})
	}
}
