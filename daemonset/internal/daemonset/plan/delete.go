package plan

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// deletePod deletes the pod, or brings it into PreparingDelete while the preDelete hook holds it, and returns whether
// the pod goes. It adds nothing to the step when the pod is held already, when the burst is used up, or when the
// server refuses that.
func (p *pass) deletePod(step *action.Step, o *pod, reason, message string) (goes bool) {
	if o.touched {
		return o.leaving
	}
	deleter := p.workload
	deleter.Lifecycle = preDelete(p.Set.Spec.Lifecycle)
	a := deleter.Delete(o.State, podupdate.DeleteReason{
		Reason:  reason,
		Message: message,
		Event: &action.Event{
			Succeeded: EventDeleted,
			Failed:    EventDeleteFailed,
			Note:      "Deleted pod " + o.Pod.Name + ": " + message,
		},
	})
	if !podupdate.HasWrites(a) {
		o.touched, o.leaving = true, true
		p.plan.Wait(podupdate.WaitPreDeleteHook, o.Pod.Name, "the preDelete hook holds the pod")
		return true
	}
	if p.plan.YieldsPlace(&a, step) {
		p.plan.Hold(step, a)
		o.touched = true
		return false
	}
	if !spend(step, &p.left.deletions) {
		return false
	}
	o.touched, o.leaving = true, true
	if a.Verb != action.Delete && deleter.Lifecycle.PreDelete.MarkPodNotReady {
		p.noteMissingReadinessGate(o)
	}
	p.plan.Put(step, a)
	return true
}

// preDelete is the only hook that has an effect.
func preDelete(l *workload.Lifecycle) *workload.Lifecycle {
	if l == nil || l.PreDelete == nil {
		return nil
	}
	return &workload.Lifecycle{PreDelete: l.PreDelete}
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
