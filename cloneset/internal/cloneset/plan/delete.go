package plan

import (
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

func preDelete(set *v1beta1.CloneSet) *workload.LifecycleHook {
	if set.Spec.Lifecycle == nil {
		return nil
	}
	return set.Spec.Lifecycle.PreDelete
}

// deletePod deletes the pod and its claims, or brings it into PreparingDelete while the preDelete
// hook holds it: an action for the step. Where claims are reused they are given to the pod first and go with it: a crash
// must not leave them behind for the next pod.
func (p *pass) deletePod(step *action.Step, o *pod, why podupdate.DeleteReason) action.Action {
	o.touched = true
	if why.Event == nil {
		why.Event = &action.Event{
			Succeeded: EventDeleted,
			Note:      "succeed to delete pod " + o.Pod.Name,
			Failed:    EventDeleteFailed,
		}
	}
	a := p.updates.Delete(o.State, why)
	if a.Verb != action.Delete || !p.plan.MayTry(&a, step) { // one that stays keeps its claims
		return a
	}
	for _, claim := range p.claimsUsedOnlyBy(o.Pod) {
		switch {
		case p.Set.Spec.ScaleStrategy.EnablePVCReuse:
			p.handovers = append(p.handovers, p.giveToPod(claim, o.Pod))
		case !p.adopting: // else the next pass finds them without a pod
			a.Dependents = append(a.Dependents, claim)
		}
	}
	return a
}

// addWithHandovers adds a step that deletes or releases pods, after one that gives them their claims.
func (p *pass) addWithHandovers(step action.Step) {
	p.plan.Add(action.Step{Name: stepClaims, Actions: p.handovers})
	p.handovers = nil
	p.plan.Add(step)
}
