package plan

import (
	"fmt"
	"slices"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// deleteSpecified replaces pods that users have labelled: those out of service at once, others as far as
// maxUnavailable lets them. All nodes that take part in updates count, whether or not this one reaches them. It acts also
// on sets that are paused or of type OnDelete, and on nodes that the update does not reach. A pod whose node is gone
// is out of service. In a surge their successors come first: see surge.
func deleteSpecified(p *pass) {
	if p.plan.Err != nil || surges(p.Set) {
		return
	}
	step := action.Step{Name: stepDelete}
	var b *budget
	for i := range slices.Backward(p.places) {
		l := &p.places[i]
		for _, o := range l.pods {
			if !o.SpecifiedDelete || !o.stays() || o.touched {
				continue
			}
			if b == nil {
				b = p.budgetOf(func(l *place) bool { return l.counts })
			}
			p.deleteMarked(&step, b, l, o)
		}
	}
	p.addRest(step)
}

// deleteMarked deletes a pod that is specified for that, if it is out of service or the budget allows it.
func (p *pass) deleteMarked(step *action.Step, b *budget, l *place, o *pod) {
	serves := l.node != nil && l.isUp()
	if serves && !b.allows(l) {
		p.waitForNodes(b.used(), b.maxUnavailable, WaitMaxUnavailable,
			fmt.Sprintf("pod %s is marked for deletion and waits (maxUnavailable %d)", o.Pod.Name, b.maxUnavailable))
		return
	}
	if !p.deletePod(step, o, "SpecifiedDelete", "it is marked for deletion") {
		return
	}
	if serves {
		b.spend(l)
	}
	l.losing = l.losing || l.node != nil && (serves || !p.skips(l))
}

// update replaces pods that are not at the revision that their node is to have. Missing pods of nodes are created
// before.
func update(p *pass) {
	if p.plan.Err != nil {
		return
	}
	step := action.Step{Name: stepUpdate}
	if surges(p.Set) {
		p.surge(&step)
	} else if p.isRolling() {
		p.roll(&step)
	}
	p.plan.Add(p.creates)
	p.addRest(step)
}

// reach are the nodes with pods that may be replaced: those in range in the order of the update, then the others.
func (p *pass) reach() []*place {
	all := slices.Clone(p.inRange)
	for i := range slices.Backward(p.places) {
		if l := &p.places[i]; !l.inRange && l.node != nil {
			all = append(all, l)
		}
	}
	return all
}

// roll replaces pods that are out of service at once, since that costs nothing and all others may wait for them; then
// others, as far as maxUnavailable lets them. Pods on a node that is known to be too small come last: they stay as
// they are, and block no other pod.
//
//	5 nodes, 2 old pods not ready, maxUnavailable 2: these two. 3 of them, maxUnavailable 1: three.
//	5 nodes, maxUnavailable 1, one pod of the last update ready and not yet available: that one, and no other.
func (p *pass) roll(step *action.Step) {
	var serving, tooSmall []*place
	for _, l := range p.reach() {
		switch o := p.replaceable(l); {
		case o == nil:
		case l.isUp() && p.isTooSmall(l, o):
			tooSmall = append(tooSmall, l)
		case l.isUp():
			serving = append(serving, l)
		default:
			p.replace(step, l, o)
		}
	}
	if serving = append(serving, tooSmall...); len(serving) == 0 {
		return
	}
	b := p.budgetOf(p.usesBudget)
	for _, l := range serving {
		if !b.allows(l) {
			if !b.full() {
				continue // another one may count already
			}
			break
		}
		if p.replace(step, l, p.replaceable(l)) {
			b.spend(l)
		}
	}
	if waiting := p.stillWaiting(serving); waiting != nil {
		p.waitForNodes(b.used(), b.maxUnavailable, WaitMaxUnavailable,
			fmt.Sprintf("node %s waits for its update (maxUnavailable %d)", waiting.name, b.maxUnavailable))
	}
}

// isTooSmall reports whether the server has refused to resize the pod because its node has less than that.
func (p *pass) isTooSmall(l *place, o *pod) bool {
	target := p.target(l)
	return target != nil && !p.Refusals.NodeTooSmallSince(o.Pod, podstate.ShortHash(target.Name)).IsZero()
}

// usesBudget reports whether the node counts against maxUnavailable in an update: one that the update reaches, one
// with a pod that is not available yet, and one that loses its pod by this plan. How else the pods of other nodes are
// is not the update's affair, unless these return to an older revision.
func (p *pass) usesBudget(l *place) bool {
	return l.inRange || l.counts && (p.former != nil || l.isUp() || l.isLeft())
}

// full reports whether nothing more may go out of service.
func (b *budget) full() bool { return len(b.down) >= b.maxUnavailable }

// stillWaiting is the first of the nodes with a pod that is not replaced in this pass.
func (p *pass) stillWaiting(nodes []*place) *place {
	for _, l := range nodes {
		if l.isUp() && p.replaceable(l) != nil {
			return l
		}
	}
	return nil
}

// replaceable is the pod of the node that the update replaces now, or nil.
func (p *pass) replaceable(l *place) *pod {
	for _, o := range l.pods {
		if o.stays() && !o.touched && p.outdated(l, o) {
			return o
		}
	}
	return nil
}

// replace brings a pod to the revision that its node is to have, in place or by deleting it; the missing pod is made
// again by a later pass. It reports whether the pod goes out of service.
func (p *pass) replace(step *action.Step, l *place, o *pod) bool {
	u, err := p.inPlaceUpdate(l, o)
	target := p.target(l)
	if u != nil && p.left.inPlace == 0 {
		step.More = true
		return false
	}
	switch p.workload.Move(step, o.State, target, u, err) {
	case podupdate.MoveWaits:
		return false
	case podupdate.MoveNeedsNewPod:
		return p.deletePod(step, o, podupdate.DeleteToRecreate, p.workload.WhyNewPod(o.State, target))
	case podupdate.MoveDeferred:
		o.touched = true
		return false
	case podupdate.MovePrepares, podupdate.MoveUpdates:
		p.left.inPlace--
	case podupdate.MoveHeld: // there is nothing to write
	}
	o.touched, o.leaving = true, true
	return true
}

// inPlaceUpdate is how the pod gets to the revision of its node in place; nil where it needs a new pod, and an error
// with the reason where it waits. One without the readiness gate could not be taken out of service for it.
func (p *pass) inPlaceUpdate(l *place, o *pod) (*inplace.Update, error) {
	target := p.target(l)
	if target == nil || o.SpecifiedDelete || !podstate.HasReadinessGate(o.Pod, contract.InPlaceUpdateReady) {
		return nil, nil
	}
	return p.workload.UpdatePath(o.State, target)
}
