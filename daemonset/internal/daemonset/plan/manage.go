package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/failures"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// manage gives every node that should run a pod its pod, and takes pods away that have ended, that are too many, or
// that are on a node that must not have one. It acts also when the set is paused or of type OnDelete.
func manage(p *pass) {
	if p.plan.Err != nil {
		return
	}
	deletes := action.Step{Name: stepDelete, SlowStart: true}
	var needing []*place
	for i := range p.places {
		l := &p.places[i]
		p.tidy(&deletes, l)
		if p.needsPod(l) {
			needing = append(needing, l)
		}
	}
	for _, l := range p.withinPartition(needing) {
		p.createPod(l)
	}
	p.replaceHeld()
	p.plan.Add(deletes)
}

// tidy takes away pods that must not be on the node.
func (p *pass) tidy(step *action.Step, l *place) {
	for _, o := range l.pods {
		switch {
		case o.Terminating || o.foreign:
		case l.node == nil:
			if !o.Assigned { // others are collected
				p.deletePod(step, o, "NodeGone", "node "+l.name+" is gone")
			}
		case !l.ShouldContinue:
			p.deletePod(step, o, "NotEligible", "node "+l.name+" has become ineligible")
		case o.finished:
			p.deleteFinished(step, l, o)
		case o.deleting:
			p.deletePod(step, o, "HookReleased", "the preDelete hook has released it")
		}
	}
	if l.node != nil && l.ShouldContinue && len(l.pods) > 1 {
		p.deleteExcess(step, l)
	}
}

// deleteFinished makes room for a successor of a pod that has ended. Where pods fail one after the other that takes
// longer each time.
func (p *pass) deleteFinished(step *action.Step, l *place, o *pod) {
	failed := o.Pod.Status.Phase == corev1.PodFailed
	if wait := p.RetryFailedAt[l.name].Sub(p.Now); failed && wait > 0 {
		p.plan.RequeueWithin(wait)
		p.plan.Wait(failures.WaitReason, o.Pod.Name, "%s", failures.Message("on node "+l.name, p.RetryFailedAt[l.name]))
		return
	}
	before := len(step.Actions)
	p.deletePod(step, o, "Ended", "it has ended and is replaced")
	if len(step.Actions) == before {
		return
	}
	n := action.Notice{
		Type:    corev1.EventTypeNormal,
		Reason:  EventPodSucceeded,
		Related: o.Pod,
		Note:    fmt.Sprintf("Pod %s on node %s succeeded and is replaced", o.Pod.Name, l.name),
	}
	if failed {
		n.Type, n.Reason = corev1.EventTypeWarning, EventPodFailed
		n.Note = fmt.Sprintf("Pod %s on node %s failed and is replaced", o.Pod.Name, l.name)
		if trouble := podstate.TroubleOf(o.Pod); trouble.Reason != "" {
			n.Note += ": " + trouble.Reason
		}
	}
	p.plan.Notices = append(p.plan.Notices, n)
}

// deleteExcess leaves one pod on the node, or, in a surge, an old one for as long as its successor is not available.
func (p *pass) deleteExcess(step *action.Step, l *place) {
	staying := l.staying()
	if len(staying) < 2 {
		return
	}
	if !surges(p.Set) {
		p.deleteAllBut(step, best(staying), staying)
		return
	}
	isSuccessor := func(o *pod) bool { return p.atTarget(l, o) && !o.SpecifiedDelete }
	if !slices.ContainsFunc(staying, isSuccessor) { // a paused set has some of an earlier template
		isSuccessor = func(o *pod) bool { return !p.unwanted(l, o) }
	}
	var wanted, old []*pod
	for _, o := range staying {
		if isSuccessor(o) {
			wanted = append(wanted, o)
		} else {
			old = append(old, o)
		}
	}
	successor, former := best(wanted), best(old)
	p.deleteAllBut(step, successor, wanted)
	p.deleteAllBut(step, former, old)
	if successor != nil && former != nil && (!former.Ready || successor.serving()) {
		p.deletePod(step, former, "Surge", "pod "+successor.Pod.Name+" has replaced it")
	}
}

// deleteAllBut deletes the others of the pods. In a surge one in service stays until the kept one serves: that one may be
// too young, or be in an update that takes it out of service.
func (p *pass) deleteAllBut(step *action.Step, kept *pod, pods []*pod) {
	for _, o := range pods {
		waits := surges(p.Set) && o.Ready && !kept.serving()
		if o != kept && !waits {
			p.deletePod(step, o, "Excess", "pod "+kept.Pod.Name+" already runs on its node")
		}
	}
}

// best is the pod to keep of those on a node: one that serves, else one that is available while an update of it is under
// way, else one in service, else one that is not specified for deletion, else the oldest; nil of none.
func best(pods []*pod) *pod {
	if len(pods) == 0 {
		return nil
	}
	value := func(o *pod) int {
		v := 0
		switch {
		case o.serving():
			v = 6
		case o.stays() && o.Available:
			v = 4
		case o.up():
			v = 2
		}
		if !o.SpecifiedDelete {
			v++
		}
		return v
	}
	kept := pods[0]
	for _, o := range pods[1:] { // the oldest first
		if value(o) > value(kept) {
			kept = o
		}
	}
	return kept
}

// replaceHeld makes successors, as far as maxSurge lets it, of pods in service that wait in PreparingDelete: in a surge
// they do not stand in the way.
func (p *pass) replaceHeld() {
	if !surges(p.Set) {
		return
	}
	var surging []*place
	for i := range p.places {
		l := &p.places[i]
		if l.creating || !l.servesHeld() || !p.needsSuccessor(l) {
			continue
		}
		if surging == nil {
			surging = p.surging()
		}
		if len(surging) < p.numbers.maxSurge {
			if p.createPod(l) {
				surging = append(surging, l)
			}
			continue
		}
		p.waitForNodes(surging, p.numbers.maxSurge, WaitMaxSurge, p.surgeMessage(l))
		return
	}
}

// servesHeld reports whether a pod that waits in PreparingDelete is in service on the node.
func (l *place) servesHeld() bool {
	return slices.ContainsFunc(l.pods, func(o *pod) bool { return o.Active && o.deleting && o.Ready })
}

// needsSuccessor reports whether all pods of a node that should run one are about to go. One that has ended is not: its
// successor comes once it may go.
func (p *pass) needsSuccessor(l *place) bool {
	return l.node != nil && l.ShouldRun && !slices.ContainsFunc(l.pods, func(o *pod) bool { return !o.Terminating && (!o.deleting || o.finished) })
}

// needsPod reports whether the node gets a pod in any case. In a surge one that terminates does not stand in the way,
// nor one in PreparingDelete that is not in service.
func (p *pass) needsPod(l *place) bool {
	if !surges(p.Set) {
		return l.node != nil && l.ShouldRun && !l.hasPod()
	}
	return p.needsSuccessor(l) && !l.servesHeld()
}

// withinPartition is how far the partition lets nodes get their first pod, in the order of their names: partitioned
// scaling leaves as many nodes without one, of whatever revision the pods of the others are. A node that had a pod gets
// the next one in any case.
//
//	10 nodes, none with a pod, partition 9: the first. 10 nodes, one with a pod, partition 5: four more.
func (p *pass) withinPartition(needing []*place) []*place {
	if !PartitionedScaling(p.Set) || p.numbers.partition == 0 {
		return needing
	}
	var allowed []*place
	room := -p.numbers.partition
	for i := range p.places {
		if l := &p.places[i]; l.ShouldRun && (!l.hasPod() || slices.Contains(needing, l)) {
			room++
		}
	}
	for _, had := range []bool{true, false} {
		for _, l := range needing {
			if p.HadPod[l.name] == had && (had || room > 0) {
				allowed = append(allowed, l)
				room--
			}
		}
	}
	slices.SortFunc(allowed, func(a, b *place) int { return byName(*a, *b) })
	return allowed
}

// PartitionedScaling reports whether the partition keeps nodes without a pod. An object that was stored before the
// field was there shows it by its annotation.
func PartitionedScaling(set *v1beta1.DaemonSet) bool {
	if onDelete(set) {
		return false
	}
	if s := set.Spec.ScaleStrategy; s != nil {
		return s.PartitionedScaling
	}
	return set.Annotations[v1beta1.ProgressiveCreatePodAnnotation] == "true"
}

// isRolling reports whether updates are made.
func (p *pass) isRolling() bool {
	return p.plan.Err == nil && !onDelete(p.Set) && !paused(p.Set)
}
