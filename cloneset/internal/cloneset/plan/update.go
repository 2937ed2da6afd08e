package plan

import (
	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

const (
	// claimTemplateRemoved is why a pod is not recreated if its replacement could not be created.
	claimTemplateRemoved = "the claim template of a volume of its new pod was removed: add the claim template again"
	// noNewPods is why a pod is not recreated if its replacement might not come.
	noNewPods = "it needs a new pod, and the operator cannot create the missing pods"
)

// deleteSpecifiedFirst and updateFirst delete and update pods before any are created when the last attempt to create some
// has failed, for instance because a quota is used up: creates that fail must block neither.
func deleteSpecifiedFirst(p *pass) {
	if p.creationFailed() {
		deleteSpecified(p)
	}
}

// deleteSpecifiedLast deletes pods unless deleteSpecifiedFirst did.
func deleteSpecifiedLast(p *pass) {
	if !p.creationFailed() {
		deleteSpecified(p)
	}
}

// updateFirst updates pods after deleteSpecifiedFirst: a long update would use up the room that these pods need.
func updateFirst(p *pass) {
	if p.creationFailed() {
		update(p)
	}
}

// updateLast updates pods unless updateFirst did.
func updateLast(p *pass) {
	if !p.creationFailed() {
		update(p)
	}
}

// creationFailed reports whether the pods which are missing could not be created the last time.
func (p *pass) creationFailed() bool {
	c := conditions.Get(p.Set.Status.Conditions, v1beta1.CloneSetFailedScale)
	return c != nil && c.Status == corev1.ConditionTrue && p.plan.Err == nil && p.currentBalance().create > 0
}

// update moves pods to the update revision, or back to the current one when a raised partition asks for it (feature
// gate CloneSetPartitionRollback).
func update(p *pass) {
	if p.plan.Err != nil || rollingUpdate(p.Set).Paused {
		return
	}
	if onDelete(p.Set) {
		p.plan.Add(action.Step{Name: stepUpdate, Actions: p.cancelUpdates(p.waiting(p.Chosen.Update))})
		return
	}
	b := p.currentBalance()
	target := p.Chosen.Update
	back := p.movesBack()
	if back {
		target = p.Chosen.Current
	}
	waiting := p.waiting(target)
	rest := []int(nil)
	if back {
		waiting, rest = p.updatedAmong(waiting)
	}
	n := min(int(max(b.updateNum, -b.updateNum)), len(waiting))
	if !back {
		p.preferUnavailable(waiting, n)
	}
	wanted := waiting[:n]
	rest = append(rest, waiting[n:]...)
	if !back {
		wanted = slices.Concat(p.overdue(), wanted)
	}
	step := action.Step{Name: stepUpdate}
	step.Actions = append(step.Actions, p.cancelUpdates(rest)...)
	p.move(&step, wanted, target, b.updateBudget)
	p.addWithHandovers(step)
}

// pause takes pods of a paused set that a hook has released for an update back to Normal: no update would continue
// with them. Those that do not count, so that others have their places already, go.
func pause(p *pass) {
	if !rollingUpdate(p.Set).Paused {
		return
	}
	places := int32(math.MaxInt32)
	if p.excludesPreparingDelete() {
		places = p.currentBalance().missing
	}
	step := action.Step{Name: stepUpdate}
	for i := range p.pods {
		o := &p.pods[i]
		forUpdate := !o.deleting && !o.specified || o.Pod.Labels[contract.SpecifiedDeleteLabel] == contract.SpecifiedDeleteForUpdate
		if o.touched || !forUpdate || p.named[o.Pod.Name] || !p.updates.HasLetGo(o.State) || o.deleting && places == 0 {
			continue
		}
		if o.touched = true; o.deleting {
			places--
		}
		step.Actions = append(step.Actions, p.updates.Pause(o.State))
	}
	p.plan.Add(step)
}

// overdue are the updated pods that this pass makes again because they have waited in vain for their resources or
// restarts.
func (p *pass) overdue() []int {
	var indexes []int
	for i := range p.pods {
		if p.pods[i].isReplaced() {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// needReplacement is how many pods are to be made again because they have waited in vain. A pass that brings one on
// once more counts it, too: its surge pod stays.
func (p *pass) needReplacement() int32 {
	n := int32(0)
	for i := range p.pods {
		if p.pods[i].needsReplacement() {
			n++
		}
	}
	return n
}

// needsReplacement reports whether an overdue pod is to be made again, now or, where this pass changes it, later.
func (p *pod) needsReplacement() bool { return p.overdue && !p.deleting && !p.specified }

// isReplaced reports whether this pass makes an overdue pod again, as far as there is room for that.
func (p *pod) isReplaced() bool { return p.needsReplacement() && !p.touched }

// preferUnavailable puts a pod out of service in the place of the last of the n pods to update, which are all
// available and wait for it. If the user has set which pods come first, only one beyond those that stay at the
// current revision comes in question: it was to leave once the n are updated. Without that, any may stay.
func (p *pass) preferUnavailable(waiting []int, n int) {
	if n == 0 || rollingUpdate(p.Set).PriorityStrategy != nil && len(waiting)-n <= int(p.numbers.partition) {
		return
	}
	unavailable, _ := p.outOfService("")
	isBroken := func(i int) bool { return !p.pods[i].Available }
	broken := slices.IndexFunc(waiting, isBroken)
	last := &p.pods[waiting[n-1]]
	if broken >= n && unavailable >= p.currentBalance().updateBudget && last.Lifecycle != contract.LifecyclePreparingUpdate {
		waiting[n-1], waiting[broken] = waiting[broken], waiting[n-1]
	}
}

// movesBack reports whether a raised partition takes updated pods back to the current revision.
func (p *pass) movesBack() bool {
	return p.rollsBack() && p.plan.Err == nil && !onDelete(p.Set) && p.currentBalance().updateNum < 0
}

// updatedAmong separates updated pods, of which there are too many, from pods of other revisions.
func (p *pass) updatedAmong(indexes []int) (updated, others []int) {
	for _, i := range indexes {
		if p.pods[i].updated {
			updated = append(updated, i)
		} else {
			others = append(others, i)
		}
	}
	return updated, others
}

// waiting are the pods that are not at the target, in the order of their update.
func (p *pass) waiting(target *appsv1.ControllerRevision) []int {
	if target == nil {
		return nil
	}
	hash := podstate.ShortHash(target.Name)
	var indexes []int
	for i := range p.pods {
		o := &p.pods[i]
		if o.Revision != hash && !o.deleting && !o.specified && !o.touched {
			indexes = append(indexes, i)
		}
	}
	if len(indexes) == 0 {
		return nil
	}
	states := make([]podstate.State, len(p.pods))
	for i := range p.pods {
		states[i] = p.pods[i].State
	}
	r := rollingUpdate(p.Set)
	return ordering.ForUpdate(states, indexes, ordering.UpdateOptions{
		Priority:     r.PriorityStrategy,
		Scatter:      r.ScatterStrategy,
		UnkeyedFirst: p.FeatureGates.UnkeyedFirst,
	})
}

// cancelUpdates takes pods in PreparingUpdate that are no longer among those to update back into service.
func (p *pass) cancelUpdates(rest []int) []action.Action {
	var actions []action.Action
	for _, i := range rest {
		o := &p.pods[i]
		if o.Lifecycle != contract.LifecyclePreparingUpdate {
			continue
		}
		o.touched = true
		actions = append(actions, p.updates.CancelUpdate(o.State))
	}
	return actions
}

// move updates the wanted pods in order as far as the budget allows. A pod that is out of service already costs
// nothing that is left to spend, so it only has to respect the number of pods at the target that are not available
// yet, or still wait for their new resources; an available pod also needs room among all unavailable ones. One pod
// out of service may always be updated, for all others may wait for it; so it also goes before pods that wait for it,
// in spite of the order. Once a pod of the target is available the revision is no worse than the broken pods: all
// pods out of service go. Pods that are overdue come first, and others do not wait for them.
//
// Example: maxUnavailable 2, five old pods, none available: two are updated at a time; with a sixth, which is available
// and at the target, all five. With eight old pods, all available, and maxUnavailable 3: three.
func (p *pass) move(step *action.Step, wanted []int, target *appsv1.ControllerRevision, budget int32) {
	hash := podstate.ShortHash(hashName(target))
	unavailable, atTarget := p.outOfService(hash)
	proven := p.isProven(hash)
	chosen := int32(0)
	chosenAvailable := int32(0)
	waiting := false
	for _, i := range wanted {
		o := &p.pods[i]
		full := atTarget+chosen >= max(budget, 1) && (o.Available || !proven)
		if full || o.Available && unavailable+chosenAvailable >= budget {
			if !waiting {
				p.plan.Wait(WaitMaxUnavailable, o.Pod.Name, "the update waits until other pods are available")
			}
			if full && !proven {
				break
			}
			waiting = true
			continue
		}
		moved := p.updatePod(step, o, target)
		if moved == podupdate.MoveWaits && rollingUpdate(p.Set).PriorityStrategy != nil {
			break
		}
		if moved == podupdate.MoveWaits || moved == podupdate.MoveDeferred {
			continue
		}
		chosen++
		if o.Available {
			chosenAvailable++
		}
	}
}

// isProven reports whether a pod of the revision is available, and no update of it is under way.
func (p *pass) isProven(hash string) bool {
	return slices.ContainsFunc(p.pods, func(o pod) bool { return o.Revision == hash && o.Available && !o.updating })
}

// outOfService counts the unavailable pods, and the pods at the revision that are so or still wait for their new
// resources, but for those that are overdue and come before all others in this pass.
func (p *pass) outOfService(hash string) (unavailable, atTarget int32) {
	for i := range p.pods {
		o := &p.pods[i]
		if !o.Available {
			unavailable++
		}
		if o.Revision == hash && (!o.Available || o.updating) && !o.isReplaced() {
			atTarget++
		}
	}
	return unavailable, atTarget
}

// updatePod moves one pod to the target, in place or by deleting it; the missing pod is made again
// at the target by the next pass. A pod that no new one can follow waits.
func (p *pass) updatePod(step *action.Step, o *pod, target *appsv1.ControllerRevision) podupdate.Move {
	u, err := p.updates.UpdatePath(o.State, target)
	if u != nil {
		o.touched = true
	}
	moved := p.updates.Move(step, o.State, target, u, err)
	if moved != podupdate.MoveNeedsNewPod {
		return moved
	}
	if template, err := p.revisions.Template(target); err == nil && len(p.formerVolumes(template)) > 0 {
		p.plan.Wait(WaitClaimTemplateRemoved, o.Pod.Name, "pod %s is not recreated: %s", o.Pod.Name, claimTemplateRemoved)
		return podupdate.MoveWaits
	}
	// One pod at a time may leave beyond the missing pods: where a quota is used up it makes room.
	if p.creationFailed() && p.currentBalance().missing > max(p.numbers.maxUnavailable, 1) {
		p.plan.Wait(conditions.ReasonFailedScale, o.Pod.Name, "%s", noNewPods)
		return podupdate.MoveWaits
	}
	a := p.deletePod(step, o, podupdate.DeleteReason{
		Reason:          podupdate.DeleteToRecreate,
		Message:         p.updates.WhyNewPod(o.State, target),
		Event:           recreated(o, target),
		LabelsWhileHeld: map[string]string{contract.SpecifiedDeleteLabel: contract.SpecifiedDeleteForUpdate}, // scaling must not take it back into service
	})
	if podupdate.HasWrites(a) && !p.plan.Try(step, a) {
		return podupdate.MoveDeferred
	}
	return podupdate.MoveNeedsNewPod
}

// needSurge is how many pods cannot get to the update revision in place, or back to the current one, or may not because of
// a disruption budget; surge pods are made for those only.
func (p *pass) needSurge(back bool) int32 {
	if !p.policy().InPlace() {
		return math.MaxInt32
	}
	target := p.Chosen.Update
	if back {
		target = p.Chosen.Current
	}
	n := int32(0)
	for i := range p.pods {
		o := &p.pods[i]
		if o.updated == back && target != nil && (p.Refusals.ByBudget(o.Pod) || p.updates.NeedsNewPod(o.State, target)) {
			n++
		}
	}
	return n
}

func hashName(r *appsv1.ControllerRevision) string {
	if r == nil {
		return ""
	}
	return r.Name
}

// recreated is the event of a pod that goes for an update, whether a hook has held it or not.
func recreated(o *pod, target *appsv1.ControllerRevision) *action.Event {
	return &action.Event{
		Succeeded: EventRecreated,
		Failed:    EventRecreateFailed,
		Note:      fmt.Sprintf("successfully delete pod %s for re-creation(revision %s)", o.Pod.Name, target.Name),
	}
}
