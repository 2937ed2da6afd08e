package plan

import (
	"fmt"
	"slices"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// surge makes successors next to pods that are to be replaced: at once for pods out of service, for others as far as
// maxSurge lets it. The old one goes once its successor is available: see deleteExcess.
//
//	5 nodes, maxSurge 2: two new pods; once these are available their two old ones go and two more come.
func (p *pass) surge(step *action.Step) {
	surging := p.surging()
	ineligible := []*place(nil)
	var waiting *place
	for _, l := range p.reach() {
		o := p.alone(l)
		switch {
		case o == nil:
		case !l.ShouldRun && o.Ready:
			ineligible = append(ineligible, l)
		case !l.ShouldRun:
			p.deletePod(step, o, surgeReason(o), "node "+l.name+" is ineligible for a new pod, and this pod is unready")
		case !o.Ready:
			p.createPod(l)
		case len(surging) < p.numbers.maxSurge:
			if p.createPod(l) {
				surging = append(surging, l)
			}
		case waiting == nil:
			waiting = l
		}
	}
	p.deleteSurplus(step, ineligible)
	if waiting != nil {
		p.waitForNodes(surging, p.numbers.maxSurge, WaitMaxSurge, p.surgeMessage(waiting))
	}
}

// surgeMessage is the message of a node that gets no second pod for now.
func (p *pass) surgeMessage(l *place) string {
	return fmt.Sprintf("node %s waits for its surge pod (maxSurge %d)", l.name, p.numbers.maxSurge)
}

// surging are the nodes that use up maxSurge.
func (p *pass) surging() []*place {
	var all []*place
	for i := range p.places {
		if l := &p.places[i]; l.hasTwo() && !p.skips(l) {
			all = append(all, l)
		}
	}
	return all
}

// hasTwo reports whether two pods share the node. One that is deleted in this pass is one of them: that may fail. So is
// one that has ended, and is to be replaced.
func (l *place) hasTwo() bool {
	n := 0
	if l.creating {
		n++
	}
	for _, o := range l.pods {
		if o.Active || o.hasEnded() {
			n++
		}
	}
	return n > 1
}

// alone is the pod that is to be replaced and has no successor yet, or nil. A successor that has ended is one for as long
// as it is there: where pods fail one after the other the next one comes later each time.
func (p *pass) alone(l *place) *pod {
	if l.creating || slices.ContainsFunc(l.pods, (*pod).hasEnded) {
		return nil
	}
	staying := l.staying()
	if len(staying) != 1 || !p.unwanted(l, staying[0]) {
		return nil
	}
	return staying[0]
}

// deleteSurplus deletes old pods of nodes that get no new one, as long as more are available than nodes should run one.
// Pods of nodes that do not exist only read so.
func (p *pass) deleteSurplus(step *action.Step, nodes []*place) {
	surplus := -p.desired
	for i := range p.places {
		if l := &p.places[i]; l.node != nil && l.isServing() {
			surplus++
		}
	}
	for _, l := range nodes {
		if surplus <= 0 {
			return
		}
		if o := p.alone(l); o != nil && p.deletePod(step, o, surgeReason(o), "more pods are available than nodes are eligible") {
			surplus--
		}
	}
}

// surgeReason is why a pod goes that gets no successor.
func surgeReason(o *pod) string {
	if o.SpecifiedDelete {
		return "SpecifiedDelete"
	}
	return podupdate.DeleteToRecreate
}
