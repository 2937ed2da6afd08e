package plan

import (
	"slices"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// refresh lets every pod continue the changes that have begun: updates in place and readiness gates; and it puts
// labels right that show its revision. It acts also when the set is paused or of type OnDelete. A pod that it changes
// is left alone for the rest of the pass; the others are not held up by it.
func refresh(p *pass) {
	step := action.Step{Name: stepRefresh, Apart: true}
	for i := range p.pods {
		o := &p.pods[i]
		if o.touched || !o.Active {
			continue
		}
		found := p.workload.Refresh(o.State, o.updated)
		o.updating = found.Updating
		if found.Held != nil {
			p.plan.Hold(&step, *found.Held)
		}
		if found.Action == nil {
			continue
		}
		o.touched = true
		found.Action.Event = &action.Event{Failed: EventUpdateFailed}
		p.plan.Put(&step, *found.Action)
	}
	p.plan.AddFirst(step)
}

// cancelDeletion takes pods in PreparingDelete back into service that need not go after all: their node may keep
// them, they are not specified, no other pod has taken their place, and no update wants a new one there. In a paused
// set no update wants one in the place of a pod that a hook has released: none would continue with it.
func cancelDeletion(p *pass) {
	step := action.Step{Name: stepRefresh}
	for i := range p.places {
		l := &p.places[i]
		if l.node == nil || !l.ShouldContinue {
			continue
		}
		for _, o := range l.pods {
			if !o.deleting || o.touched || !o.Active || o.foreign || o.SpecifiedDelete || p.isReplaced(l, o) || p.wantsNewPod(l, o) && !p.letGoInPause(o) {
				continue
			}
			a := p.workload.KeepInService(o.State)
			a.Event = &action.Event{
				Succeeded: EventDeleteCancelled,
				Failed:    EventUpdateFailed,
				Note:      "Cancelled the deletion of pod " + o.Pod.Name + ": the pod is needed again",
			}
			o.touched, o.deleting = true, false
			step.Actions = append(step.Actions, a)
			break
		}
	}
	p.plan.Add(step)
}

func (p *pass) letGoInPause(o *pod) bool {
	held := podupdate.Workload{Lifecycle: preDelete(p.Set.Spec.Lifecycle)}
	return paused(p.Set) && held.HasLetGo(o.State)
}

// isReplaced reports whether another pod on the node makes this one needless. In a surge one of a revision that is no
// longer wanted does not: it is the one that goes.
func (p *pass) isReplaced(l *place, o *pod) bool {
	return slices.ContainsFunc(l.pods, func(other *pod) bool {
		return other != o && other.stays() && (!surges(p.Set) || p.atTarget(l, other) || !p.atTarget(l, o))
	})
}

// wantsNewPod reports whether the update replaces the pod rather than changing it.
func (p *pass) wantsNewPod(l *place, o *pod) bool {
	if !p.outdated(l, o) {
		return false
	}
	u, err := p.inPlaceUpdate(l, o)
	return u == nil && err == nil
}
