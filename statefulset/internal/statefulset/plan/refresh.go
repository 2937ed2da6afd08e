package plan

import (
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"
)

// refresh lets every pod continue the changes that have begun: updates in place, readiness gates, lifecycle states;
// and it puts labels right that show which pod it is. It acts also when the set is paused, of type OnDelete, or held
// up by another pod. A pod that it changes is left alone for the rest of the pass; the others are not held up by it.
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
		if p.missingLabels(o.State) != nil {
			found.Action.Event = &action.Event{
				Succeeded: EventUpdated,
				Failed:    EventUpdateFailed,
				Note:      "Updated labels of pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name,
			}
		}
		p.plan.Put(&step, *found.Action)
	}
	p.plan.AddFirst(step)
}

// cancelDeletion takes pods in PreparingDelete back into service that need not go after all: their ordinal runs, they
// are not specified, and no update wants a new pod in their place.
func cancelDeletion(p *pass) {
	step := action.Step{Name: stepRefresh}
	for i := range p.pods {
		o := &p.pods[i]
		if !o.deleting || o.touched || !o.Active || !o.live || o.SpecifiedDelete || p.plan.Err != nil || p.wantsNewPod(o) {
			continue
		}
		c := p.workload.Change(o.Pod)
		lifecycle.Set(c, contract.LifecycleNormal)
		o.touched = true
		step.Actions = append(step.Actions, action.Action{
			Verb:         action.PatchMetadata,
			Object:       o.Pod,
			Independent:  true,
			OutOfService: podstate.HeldByUpdate(o.Pod),
			Patches:      c.Patches(),
			Reason:       EventDeleteCancelled,
			Message:      "the pod is needed again",
			Event: &action.Event{
				Succeeded: EventDeleteCancelled,
				Failed:    EventUpdateFailed,
				Note:      "Cancelled the deletion of pod " + o.Pod.Name + " in StatefulSet " + p.Set.Name + ": the pod is needed again",
			},
		})
	}
	p.plan.Add(step)
}

// wantsNewPod reports whether the update replaces the pod rather than changing it.
func (p *pass) wantsNewPod(o *pod) bool {
	if !o.inRange || o.updated && o.hasVolumes && !o.claims.needsRemount && !o.overdue {
		return false
	}
	if !o.hasVolumes || o.claims.needsRemount {
		return p.workload.Policy != podupdate.InPlaceOnly
	}
	u, err := p.workload.UpdatePath(o.State, p.Chosen.Update)
	return u == nil && err == nil
}
