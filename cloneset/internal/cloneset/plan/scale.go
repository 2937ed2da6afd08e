package plan

import (
	"slices"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// cancelDeletion takes pods in PreparingDelete back that are needed again, for instance because
// spec.replicas was raised. A hook with markPodNotReady leaves no way back.
func cancelDeletion(p *pass) {
	if p.plan.Err != nil {
		return
	}
	doomed := int32(0)
	for i := range p.pods {
		if p.pods[i].deleting || p.pods[i].specified {
			doomed++
		}
	}
	wanted := p.numbers.replicas - int32(len(p.pods)) + doomed
	if p.excludesPreparingDelete() { // one that is taken back counts again, as a new one would
		wanted = min(wanted, p.currentBalance().missing)
	}
	step := action.Step{Name: stepScale}
	for i := range p.pods {
		o := &p.pods[i]
		if wanted <= 0 {
			break
		}
		if !o.deleting || o.touched || o.SpecifiedDelete || p.named[o.Pod.Name] {
			continue
		}
		a, ok := p.updates.CancelDelete(o.State)
		if !ok {
			continue
		}
		wanted--
		o.touched = true
		step.Actions = append(step.Actions, a)
	}
	p.plan.Add(step)
}

// scaleOut creates the pods that are missing: pods of the current revision first, then pods of the update revision,
// as many as scaleStrategy.maxUnavailable allows. Where pods fail one after the other they come later each time.
func scaleOut(p *pass) {
	if p.plan.Err != nil {
		return
	}
	b := p.currentBalance()
	if b.missing > b.create {
		p.plan.Wait(WaitScaleLimit, "", "%d more pods are created as soon as other pods are available (scaleStrategy.maxUnavailable)", b.missing-b.create)
		p.noteScaleUpLimit(b.create)
	}
	if b.create > 0 && p.awaitRetry() {
		return
	}
	step := action.Step{Name: stepScale, SlowStart: true}
	creates := b.create - p.waitForClaims(b.create)
	step.More = creates > action.MaxCreates
	for i := range min(creates, action.MaxCreates) {
		from := p.Chosen.Update
		if i < b.createOld && p.Chosen.Current != nil {
			from = p.Chosen.Current
		}
		create, err := p.newPod(from)
		if err != nil {
			p.plan.Err = err
			return
		}
		if create != nil {
			step.Actions = append(step.Actions, *create)
		}
	}
	p.explainClaimless(p.Chosen.Current)
	p.plan.Add(step)
}

// finishDeletion deletes pods in PreparingDelete that the preDelete hook has let go.
func finishDeletion(p *pass) {
	step := action.Step{Name: stepScale}
	for i := range p.pods {
		o := &p.pods[i]
		if !o.deleting || o.touched || lifecycle.Hooked(preDelete(p.Set), o.Pod) {
			continue
		}
		why := podupdate.DeleteReason{Reason: "HookReleased", Message: "the preDelete hook has released it"}
		if o.Pod.Labels[contract.SpecifiedDeleteLabel] == contract.SpecifiedDeleteForUpdate && p.Chosen.Update != nil {
			why.Event = recreated(o, p.Chosen.Update)
		}
		step.Actions = append(step.Actions, p.deletePod(&step, o, why))
	}
	p.addWithHandovers(step)
}

// deleteSpecified deletes the pods that users named: those out of service at once, serving ones as
// far as maxUnavailable allows. A serving pod that is not available yet is among the unavailable ones
// already, so that its deletion costs no more.
func deleteSpecified(p *pass) {
	if p.plan.Err != nil {
		return
	}
	limit := p.currentBalance().readyLimit
	step := action.Step{Name: stepScale}
	for i := range p.pods {
		o := &p.pods[i]
		if !o.specified || o.touched {
			continue
		}
		cost := int32(0)
		if o.serving() {
			if o.Available {
				cost = 1
			}
			if limit < cost {
				p.plan.Wait(WaitMaxUnavailable, o.Pod.Name, "%s", p.explainSpecified())
				continue
			}
		}
		a := p.deletePod(&step, o, podupdate.DeleteReason{Reason: "SpecifiedDelete", Message: "it is marked for deletion"})
		if p.plan.Try(&step, a) {
			limit -= cost
		}
	}
	p.addWithHandovers(step)
}

// explainSpecified names the wait of a pod that is specified for deletion.
func (p *pass) explainSpecified() string {
	message := "the pod is marked for deletion and waits until another pod is available (maxUnavailable)"
	if r := rollingUpdate(p.Set); r.Paused && r.MaxSurge != nil {
		message += "; maxSurge has no effect while the update is paused"
	}
	return message
}

// scaleIn deletes pods that are too many, the least valuable first. It waits until pods that are
// specified or prepared for deletion are gone.
func scaleIn(p *pass) {
	if p.plan.Err != nil {
		return
	}
	b := p.currentBalance()
	if b.remove == 0 {
		return
	}
	var old, updated []int
	for i := range p.pods {
		switch o := &p.pods[i]; {
		case o.specified || o.deleting:
			return
		case p.scalesAsUpdated(o):
			updated = append(updated, i)
		default:
			old = append(old, i)
		}
	}
	fromOld := min(b.remove, b.removeOld, int32(len(old)))
	fromUpdated := min(b.remove-fromOld, int32(len(updated)))
	fromOld = min(b.remove-fromUpdated, int32(len(old)))
	chosen, staying := p.leastValuable(old, fromOld, updated)
	others, _ := p.leastValuable(updated, fromUpdated, staying)
	chosen = slices.Concat(chosen, others)
	limit := b.readyLimit
	step := action.Step{Name: stepScale}
	for _, i := range chosen {
		o := &p.pods[i]
		if o.touched {
			continue
		}
		if o.serving() && limit <= 0 {
			p.plan.Wait(WaitMaxUnavailable, o.Pod.Name, "the surplus pod is deleted as soon as another pod is available (maxUnavailable)")
			continue
		}
		a := p.deletePod(&step, o, podupdate.DeleteReason{Reason: "ScaleIn", Message: "there are more pods than spec.replicas"})
		if p.plan.Try(&step, a) && o.serving() {
			limit--
		}
	}
	p.addWithHandovers(step)
}

// leastValuable picks n of the pods of a group in the order of deletion. Others share the domains with them.
func (p *pass) leastValuable(group []int, n int32, others []int) (chosen, staying []int) {
	switch {
	case int(n) >= len(group):
		return group, nil
	case n <= 0:
		return nil, group
	}
	states := p.states(group)
	order := ordering.ForDeletion(states, p.ranks(states, p.states(others)))
	for k, index := range order {
		order[k] = group[index]
	}
	return order[:n], order[n:]
}

func (p *pass) states(indexes []int) []podstate.State {
	states := make([]podstate.State, len(indexes))
	for k, i := range indexes {
		states[k] = p.pods[i].State
	}
	return states
}

// ranks spreads the deletions: over the domains of the template's topologySpreadConstraints, or
// over nodes when it has none.
func (p *pass) ranks(states, others []podstate.State) []float64 {
	constraints := p.Set.Spec.Template.Spec.TopologySpreadConstraints
	if len(constraints) == 0 {
		return ordering.SameNodeRanks(states, others)
	}
	spread := make([]ordering.SpreadConstraint, 0, len(constraints))
	for i := range constraints {
		spread = append(spread, ordering.SpreadConstraint{TopologyKey: constraints[i].TopologyKey})
	}
	return ordering.SpreadRanks(states, others, spread, p.NodeLabels)
}
