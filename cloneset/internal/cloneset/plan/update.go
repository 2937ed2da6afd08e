package plan

import (
	"errors"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/inplace"
	"github.com/flotilla-project/flotilla/core/lifecycle"
	"github.com/flotilla-project/flotilla/core/ordering"
	"github.com/flotilla-project/flotilla/core/podstate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// verdict says how a pod of one revision gets to the target.
type verdict struct {
	update *inplace.Update
	err    error // why not in place
}

// update moves pods to the update revision, or back to the current one when a raised partition asks
// for it (gate CloneSetPartitionRollback).
func update(p *pass) {
	if p.plan.Err != nil || rollingUpdate(p.Set).Paused {
		return
	}
	if onDelete(p.Set) {
		p.plan.Add(action.Step{Name: StepUpdate, Actions: p.abandon(p.waiting(p.Chosen.Update))})
		return
	}
	b := p.weigh()
	target := p.Chosen.Update
	if b.updateNum < 0 {
		target = p.Chosen.Current
	}
	waiting := p.waiting(target)
	wanted := waiting[:min(int(abs(b.updateNum)), len(waiting))]
	step := action.Step{Name: StepUpdate}
	step.Actions = append(step.Actions, p.abandon(waiting[len(wanted):])...)
	step.Actions = append(step.Actions, p.move(wanted, target, b.updateBudget)...)
	p.addLeaving(step)
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
		if o.Revision != hash && !o.deleting && !o.specified && !o.inGrace && !o.touched {
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
		Priority: r.PriorityStrategy, Scatter: r.ScatterStrategy, UnkeyedFirst: p.Gates.UnkeyedFirst,
	})
}

// abandon takes pods in PreparingUpdate that are no longer among those to update back into service.
func (p *pass) abandon(rest []int) []action.Action {
	var actions []action.Action
	for _, i := range rest {
		o := &p.pods[i]
		if o.Lifecycle != contract.LifecyclePreparingUpdate {
			continue
		}
		c := p.change(o.Pod)
		lifecycle.AbandonUpdate(c, p.Set.Spec.Lifecycle)
		o.touched = true
		actions = append(actions, action.Action{
			Verb: verbOf(c), Object: o.Pod, Patches: c.Patches(), Reason: "NoLongerWanted", Message: "its update is no longer wanted",
		})
	}
	return actions
}

// move updates the wanted pods in order as far as the budget allows. A pod that is out of service
// already costs nothing that is left to spend, so it only has to respect the number of pods at the
// target that are not available yet, or whose new resources are not in force yet; an available pod also needs room among all unavailable ones.
// One pod out of service may always be updated, for it may be what everything else waits for.
//
// Example: maxUnavailable 2, five old pods, none available: two are updated at a time. With eight
// old pods, all available, and maxUnavailable 3: three.
func (p *pass) move(wanted []int, target *appsv1.ControllerRevision, budget int32) []action.Action {
	hash := podstate.ShortHash(hashName(target))
	unavailable, atTarget := int32(0), int32(0)
	for i := range p.pods {
		o := &p.pods[i]
		if !o.Available {
			unavailable++
		}
		if o.Revision == hash && (!o.Available || o.updating) {
			atTarget++
		}
	}
	var actions []action.Action
	chosen, chosenAvailable := int32(0), int32(0)
	for _, i := range wanted {
		o := &p.pods[i]
		if atTarget+chosen >= max(budget, 1) || o.Available && unavailable+chosenAvailable >= budget {
			p.plan.Wait("MaxUnavailable", o.Pod.Name, "the update waits until other pods are available")
			break
		}
		a, err := p.updatePod(o, target)
		if err != nil {
			p.plan.Wait(waitReason(err), o.Pod.Name, "%s", err)
			if rollingUpdate(p.Set).PriorityStrategy != nil {
				break
			}
			continue
		}
		if a.Verb == action.Delete || len(a.Patches) > 0 { // a pod that its hook holds already needs no write
			actions = append(actions, a)
		}
		chosen++
		if o.Available {
			chosenAvailable++
		}
	}
	return actions
}

// updatePod moves one pod to the target, in place or by deleting it; the missing pod is made again
// at the target by the next pass.
func (p *pass) updatePod(o *pod, target *appsv1.ControllerRevision) (action.Action, error) {
	policy := p.policy()
	if policy == v1beta1.InPlaceIfPossible || policy == v1beta1.InPlaceOnly {
		v := p.verdictFor(o.Revision, target)
		if v.err == nil {
			v.err = v.update.Check(o.Pod)
		}
		if v.err == nil {
			return p.updateInPlace(o, v.update, target), nil
		}
		if policy == v1beta1.InPlaceOnly {
			return action.Action{}, &notInPlaceError{pod: o.Pod.Name, cause: v.err}
		}
	}
	a := p.deletePod(o, "Recreate", "revision "+podstate.ShortHash(target.Name)+" needs a new pod")
	if a.Verb == action.Delete {
		a.Event = &action.Event{
			Succeeded: eventRecreated, Failed: eventRecreateFailed,
			Note: fmt.Sprintf("successfully delete pod %s for re-creation(revision %s)", o.Pod.Name, target.Name),
		}
		return a, nil
	}
	// The mark keeps a held pod from being taken back into service.
	c := p.change(o.Pod)
	lifecycle.BeginDelete(c, p.Set.Spec.Lifecycle)
	c.SetLabel(contract.SpecifiedDeleteLabel, "true")
	a.Patches = c.Patches()
	return a, nil
}

func (p *pass) updateInPlace(o *pod, u *inplace.Update, target *appsv1.ControllerRevision) action.Action {
	o.touched = true
	c := p.change(o.Pod)
	hash := podstate.ShortHash(target.Name)
	if !lifecycle.BeginUpdate(c, p.Set.Spec.Lifecycle) {
		return action.Action{
			Verb: verbOf(c), Object: o.Pod, Patches: c.Patches(), Reason: "InPlaceUpdateHook",
			Message: "revision " + hash + "; the inPlaceUpdate hook holds it",
		}
	}
	p.plan.Wake(u.Begin(c, gracePeriod(p.Set)))
	c.SetLabel(contract.RevisionLabel, p.revisionLabel(target.Name))
	c.SetLabel(contract.TemplateHashLabel, hash)
	if !u.Interrupts(o.Pod) {
		lifecycle.Refresh(c, p.Set.Spec.Lifecycle, true)
	}
	return action.Action{
		Verb: action.UpdateInPlace, Object: o.Pod, Patches: c.Patches(), Reason: "Update", Message: "revision " + hash,
		Event: &action.Event{
			Succeeded: eventInPlace, Failed: eventInPlaceFailed,
			Note: fmt.Sprintf("successfully update pod %s in-place(revision %s)", o.Pod.Name, target.Name),
		},
	}
}

// verdictFor says, once for each revision, how its pods get to the target.
func (p *pass) verdictFor(from string, target *appsv1.ControllerRevision) verdict {
	key := from + ">" + target.Name
	v, ok := p.diffs[key]
	if !ok {
		v.update, v.err = inplace.Diff(p.revisionWith(from), p.inPlaceRevision(target), p.inPlaceOptions())
		p.diffs[key] = v
	}
	return v
}

// revisionWith finds the revision with the short hash, nil when it is no longer known.
func (p *pass) revisionWith(hash string) *inplace.Revision {
	for _, r := range p.Revisions {
		if hash != "" && podstate.ShortHash(r.Name) == hash {
			return p.inPlaceRevision(r)
		}
	}
	return nil
}

func (p *pass) inPlaceRevision(r *appsv1.ControllerRevision) *inplace.Revision {
	template, err := p.template(r)
	if err != nil {
		return nil
	}
	to := &inplace.Revision{Name: r.Name, Template: template}
	if hash, ok := r.Annotations[contract.VolumeClaimTemplateHashAnnotation]; ok {
		to.ClaimsHash = &hash
	}
	return to
}

// mustRecreate is how many pods cannot get to the update revision in place; surge pods are made for
// those only.
func (p *pass) mustRecreate() int32 {
	policy := p.policy()
	if policy != v1beta1.InPlaceIfPossible && policy != v1beta1.InPlaceOnly {
		return math.MaxInt32
	}
	n := int32(0)
	for i := range p.pods {
		o := &p.pods[i]
		if o.updated || p.Chosen.Update == nil {
			continue
		}
		if v := p.verdictFor(o.Revision, p.Chosen.Update); v.err != nil || v.update.Check(o.Pod) != nil {
			n++
		}
	}
	return n
}

func gracePeriod(set *v1beta1.CloneSet) int32 {
	if s := rollingUpdate(set).InPlaceUpdateStrategy; s != nil {
		return s.GracePeriodSeconds
	}
	return 0
}

func hashName(r *appsv1.ControllerRevision) string {
	if r == nil {
		return ""
	}
	return r.Name
}

// notInPlaceError says that policy InPlaceOnly and the change of the template contradict each other.
type notInPlaceError struct {
	pod   string
	cause error
}

// Error is in the words that users of the API know.
func (e *notInPlaceError) Error() string {
	return fmt.Sprintf("find Pod %s update strategy is InPlaceOnly but can not update in-place: %v", e.pod, e.cause)
}

// Unwrap is why the update is not possible in place.
func (e *notInPlaceError) Unwrap() error { return e.cause }

// waitReason is the reason of a wait for a pod that cannot be updated now.
func waitReason(err error) string {
	if _, ok := errors.AsType[*inplace.NodeAgentMissingError](err); ok {
		return "NodeAgentMissing"
	}
	return "NotInPlace"
}
