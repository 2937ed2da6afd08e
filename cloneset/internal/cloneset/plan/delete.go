package plan

import (
	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/lifecycle"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// Reasons of events on the set.
const (
	eventCreated        = "SuccessfulCreate"
	eventCreateFailed   = "FailedCreate"
	eventDeleted        = "SuccessfulDelete"
	eventDeleteFailed   = "FailedDelete"
	eventInPlace        = "SuccessfulUpdatePodInPlace"
	eventInPlaceFailed  = "FailedUpdatePodInPlace"
	eventRecreated      = "SuccessfulUpdatePodReCreate"
	eventRecreateFailed = "FailedUpdatePodReCreate"
	eventFailedUpdate   = "FailedUpdate"
	eventScaleUpLimited = "ScaleUpLimited"
)

func preDelete(set *v1beta1.CloneSet) *workload.LifecycleHook {
	if set.Spec.Lifecycle == nil {
		return nil
	}
	return set.Spec.Lifecycle.PreDelete
}

// deletePod deletes the pod and its claims, or brings it into PreparingDelete while the preDelete
// hook holds it. Where claims are reused they are given to the pod first and go with it: a crash must
// not leave them behind for the next pod.
func (p *pass) deletePod(o *pod, reason, message string) action.Action {
	o.touched = true
	c := p.change(o.Pod)
	if !lifecycle.BeginDelete(c, p.Set.Spec.Lifecycle) {
		return action.Action{
			Verb: verbOf(c), Object: o.Pod, Patches: c.Patches(), Reason: reason,
			Message: message + "; the preDelete hook holds it",
		}
	}
	a := action.Action{
		Verb: action.Delete, Object: o.Pod, Reason: reason, Message: message,
		Event: &action.Event{Succeeded: eventDeleted, Note: "succeed to delete pod " + o.Pod.Name, Failed: eventDeleteFailed},
	}
	for _, claim := range p.claimsWith(o.Pod.Labels[contract.InstanceIDLabel]) {
		if p.Set.Spec.ScaleStrategy.EnablePVCReuse {
			p.leaving = append(p.leaving, p.handOver(claim, o.Pod))
		} else {
			a.Then = append(a.Then, claim)
		}
	}
	return a
}

// addLeaving adds a step with which pods leave, after the claims that go with them.
func (p *pass) addLeaving(step action.Step) {
	p.plan.Add(action.Step{Name: StepClaims, Actions: p.leaving})
	p.leaving = nil
	p.plan.Add(step)
}
