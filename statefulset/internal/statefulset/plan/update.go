package plan

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/inplace"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// errStorage means that a pod lacks a volume, which no pod that exists can get.
var errStorage = &inplace.NotPossibleError{Path: "spec.volumeClaimTemplates", Message: "the pod lacks the volume of a claim template"}

// update moves the pods in the range of the update to the update revision and to the present claim templates. Pods
// that are out of service go first, since all others may wait for them: at most maxUnavailable at a time, and all
// once the update revision has proven good. Then available ones go as far as maxUnavailable lets them, in the order
// of the update.
func update(p *pass) {
	if p.plan.Err != nil {
		return
	}
	step := action.Step{Name: stepUpdate}
	p.cancelUpdates(&step)
	p.pause(&step)
	if !rollingUpdate(p.Set).Paused && !onDelete(p.Set) {
		p.holdGrowth()
		p.updateUnavailable(&step)
		p.updateAvailable(&step)
	}
	p.plan.Add(step)
}

// cancelUpdates takes pods in PreparingUpdate back into service if their update is no longer wanted.
func (p *pass) cancelUpdates(step *action.Step) {
	for i := range p.pods {
		o := &p.pods[i]
		if o.live && !o.inRange && !o.touched && o.Active {
			p.cancelUpdate(step, o)
		}
	}
}

// pause takes pods of a paused set that a hook has released for an update back to Normal: no update would continue
// with them.
func (p *pass) pause(step *action.Step) {
	if !rollingUpdate(p.Set).Paused {
		return
	}
	for i := range p.pods {
		o := &p.pods[i]
		if !o.live || o.touched || !o.Active || o.SpecifiedDelete || !p.workload.HasLetGo(o.State) {
			continue
		}
		o.touched = true
		step.Actions = append(step.Actions, p.workload.Pause(o.State))
	}
}

// cancelUpdate takes a pod out of PreparingUpdate; pods in other states stay as they are.
func (p *pass) cancelUpdate(step *action.Step, o *pod) {
	if o.Lifecycle != contract.LifecyclePreparingUpdate {
		return
	}
	if a := p.workload.CancelUpdate(o.State); podupdate.HasWrites(a) {
		o.touched = true
		step.Actions = append(step.Actions, a)
	}
}

// updateUnavailable updates pods that are out of service. A second bad revision gets no further than the first batch.
//
//	maxUnavailable 2, 0 to 4 crash: 4 and 3. Once one of them is available: 2, 1 and 0.
func (p *pass) updateUnavailable(step *action.Step) {
	room := p.numbers.maxUnavailable
	waits := p.underWay()
	if p.isProven() || ordered(p.Set) {
		room = len(p.targets)
	} else {
		room -= len(waits) + p.creating()
	}
	told := false
	for o := range p.unavailableTargets() {
		switch {
		case o.updated: // it is under way and counts already
			p.move(step, o)
		case room > 0 && p.move(step, o):
			room--
			waits = append(waits, o)
		case room <= 0 && !told:
			told = true
			p.waitFor(waits, "unavailable pod "+o.Pod.Name+" is updated after the first pods of the update revision")
		}
	}
}

// isProven reports whether a pod of the update revision is available, and no update of it is under way.
func (p *pass) isProven() bool {
	return slices.ContainsFunc(p.slots, func(s slot) bool {
		return s.pod != nil && s.pod.updated && s.pod.serving() && !s.pod.countsAsUnavailable()
	})
}

// underWay are the pods on their way to the update revision, and not available, also pods of it that lack a volume;
// of pods outside the range of the update the ones that were made with it.
func (p *pass) underWay() []*pod {
	var all []*pod
	for _, o := range p.targets {
		if o.Terminating || o.updated && o.outOfService() {
			all = append(all, o)
		}
	}
	for i := range p.slots {
		if o := p.slots[i].pod; o != nil && !o.inRange && o.updated && o.outOfService() {
			all = append(all, o)
		}
	}
	return all
}

// creating is how many pods are created in this pass.
func (p *pass) creating() int {
	return p.plan.Tries(stepCreate)
}

// unavailableTargets are the pods in the range of the update that are down and have not arrived, each as its turn comes.
// In order only the lowest one may be touched, since it is the one that the others wait for. A missing pod comes before
// those above it, unless it has to wait for a claim.
//
//	ordered, 0 available, 1 and 2 crash at a bad revision: 1. Once its successor is available: 2.
func (p *pass) unavailableTargets() iter.Seq[*pod] {
	return func(yield func(*pod) bool) {
		if ordered(p.Set) {
			if o := p.lowestUnavailable(); o != nil && p.mayMove(o) && !o.touched {
				yield(o)
			}
			return
		}
		for _, o := range p.targets {
			if o.outOfService() && p.mayMove(o) && !o.touched && !yield(o) {
				return
			}
		}
	}
}

// lowestUnavailable is the pod of the lowest ordinal in the range of the update that is out of service; nil if there is
// none, or if a pod before it is to be created first.
func (p *pass) lowestUnavailable() *pod {
	for i := range p.slots {
		switch o := p.slots[i].pod; {
		case o == nil && p.slots[i].held:
		case o == nil:
			return nil
		case o.inRange && o.outOfService():
			return o
		}
	}
	return nil
}

// mayMove reports whether an update of the pod may begin. One that serves waits for claims that grow, and not for claims
// that do not.
func (p *pass) mayMove(o *pod) bool {
	held := o.claims.growing != "" || o.claims.problem != nil && o.claims.problem.reason == WaitResize
	return o.Active && p.lacksAnything(o) && (o.outOfService() || !held)
}

// passesOver reports whether the update of available pods continues without the pod. Where pods have no order, one whose deletion is
// refused gives its place to others.
func (p *pass) passesOver(o *pod) bool {
	return o.outOfService() || !p.mayMove(o) || o.refused && !ordered(p.Set)
}

// lacksAnything reports whether an update can do anything for the pod now. Claims that the server does not let grow do not
// count.
func (p *pass) lacksAnything(o *pod) bool { return o.needsUpdate() || len(p.growable(o)) > 0 }

// updateAvailable updates available pods. From the first on for which there is no room, only those are updated that count
// already, whatever their turn: it may be one of them that does not get the resources of its present revision, and
// for which the others wait.
//
//	maxUnavailable 2 of 5: 4 and 3 go; as soon as one of them is available, 2.
//	Six pods, partition 3, maxUnavailable 2, pod 0 terminating: 5 only.
func (p *pass) updateAvailable(step *action.Step) {
	b, waits := p.disruptionBudget(), false
	for _, o := range p.targets {
		if p.passesOver(o) {
			continue
		}
		switch obstacle := p.updateObstacle(o); {
		case o.touched: // its turn comes when its present change is seen
			return
		case ordered(p.Set) && len(p.condemned) > 0:
			p.waitForDeletion(p.condemned[:1], "pod "+o.Pod.Name+" is updated after the surplus pods are deleted")
			return
		case obstacle != nil: // with or without room for it
			p.plan.Wait(podupdate.WaitReason(obstacle), o.Pod.Name, "%s", obstacle)
			p.cancelUpdate(step, o)
			if ordered(p.Set) {
				return
			}
		case !b.allows(o):
			if !waits {
				p.waitFor(b.counted, fmt.Sprintf("pod %s waits for its update (maxUnavailable %d)", o.Pod.Name, b.maxUnavailable))
			}
			if waits = true; b.full() {
				return
			}
		default:
			counted := o.countsAsUnavailable()
			if p.move(step, o) {
				b.spend(o, counted)
			} else if ordered(p.Set) {
				return
			}
		}
	}
}

// move brings one pod on towards the update revision, and reports whether that takes it out of service:
// its claims grow first, then it is updated in place or deleted; the missing pod is made again by the
// next pass.
func (p *pass) move(step *action.Step, o *pod) bool {
	if claims := p.growable(o); len(claims) > 0 {
		p.growClaimsOf(o, claims)
		o.touched, o.leaving = true, true
		return true
	}
	u, err := p.updatePath(o)
	switch p.workload.Move(step, o.State, p.Chosen.Update, u, err) {
	case podupdate.MoveWaits: // a user must act; an update that was begun is abandoned
		p.cancelUpdate(step, o)
		return false
	case podupdate.MoveNeedsNewPod:
		return p.replace(step, o)
	case podupdate.MoveDeferred:
		o.touched = true
		return false
	case podupdate.MovePrepares:
		if p.Set.Spec.Lifecycle.InPlaceUpdate.MarkPodNotReady {
			p.noteMissingReadinessGate(o)
		}
	case podupdate.MoveHeld, podupdate.MoveUpdates: // it leaves
	}
	o.touched, o.leaving = true, true
	return true
}

// updateObstacle is the reason why the pod cannot get to the update revision before a user acts; nil for none, and while
// its claims grow, which comes first.
func (p *pass) updateObstacle(o *pod) error {
	if len(p.growable(o)) > 0 {
		return nil
	}
	_, err := p.updatePath(o)
	return err
}

// replace deletes a pod that a new one is to follow, once the claims record that the new one mounts them again. It
// reports whether the pod goes.
func (p *pass) replace(step *action.Step, o *pod) bool {
	switch {
	case len(o.claims.unmarked) > 0:
		p.markForRemount(o)
		o.touched, o.leaving = true, true
		return true
	case o.claims.needsRemount && o.updated:
		return p.deletePod(step, o, podupdate.DeleteToRecreate, "the file system of PVC "+o.claims.fileSystemPending+" is expanded when a new pod mounts it")
	}
	return p.deletePod(step, o, podupdate.DeleteToRecreate, p.workload.WhyNewPod(o.State, p.Chosen.Update))
}

// updatePath is how the pod gets to the update revision: in place, or by a new pod where there is no update.
func (p *pass) updatePath(o *pod) (*inplace.Update, error) {
	if o.hasVolumes && !o.claims.needsRemount {
		return p.workload.UpdatePath(o.State, p.Chosen.Update)
	}
	if p.workload.Policy == podupdate.InPlaceOnly {
		return nil, &podupdate.NotInPlaceError{Pod: o.Pod.Name, Cause: errStorage}
	}
	return nil, nil
}

// deleteSpecified replaces live pods that users have labelled, from the highest ordinal down: those out
// of service at once, others as far as maxUnavailable lets them, and in an ordered set after the surplus pods. It acts also
// on sets that are paused or of type OnDelete, and below the partition.
func deleteSpecified(p *pass) {
	if p.plan.Err != nil {
		return
	}
	step := action.Step{Name: stepDelete}
	var b *disruptionBudget
	for _, s := range slices.Backward(p.slots) {
		o := s.pod
		if o == nil || !o.SpecifiedDelete || o.touched || !o.Active || o.claims.holdsDeletion() && !o.outOfService() {
			continue
		}
		if b == nil {
			b = p.disruptionBudget()
		}
		serves := !o.outOfService()
		wasOut := o.countsAsUnavailable()
		if serves && !p.specifiedMayGo(o, b) {
			continue
		}
		if p.deletePod(&step, o, "SpecifiedDelete", "it is marked for deletion") && serves {
			b.spend(o, wasOut)
		}
	}
	p.plan.Add(step)
}

// specifiedMayGo reports whether a serving pod that is marked for deletion may go now, and if not, says what it waits for.
func (p *pass) specifiedMayGo(o *pod, b *disruptionBudget) bool {
	switch {
	case ordered(p.Set) && len(p.condemned) > 0:
		p.waitForDeletion(p.condemned[:1], "pod "+o.Pod.Name+" is marked for deletion and goes after the surplus pods")
	case !b.allows(o):
		p.waitFor(b.counted, fmt.Sprintf("pod %s is marked for deletion and waits (maxUnavailable %d)", o.Pod.Name, b.maxUnavailable))
	default:
		return true
	}
	return false
}

// namesOf are the names of the first pods.
func namesOf(pods []*pod) string {
	names := make([]string, len(pods))
	for i, o := range pods {
		names[i] = o.Pod.Name
	}
	return firstOf(names)
}

// firstOf is a list of the first names, and shows whether there are others.
func firstOf(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "and others")
	}
	return strings.Join(names, ", ")
}
