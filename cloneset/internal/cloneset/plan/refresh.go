package plan

import (
	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/inplace"
	"github.com/flotilla-project/flotilla/core/lifecycle"
	"github.com/flotilla-project/flotilla/core/podstate"
)

// refresh lets every pod go on with what it is in the middle of: updates in place, readiness gates
// and lifecycle states. It acts also when the set is paused or of type OnDelete. A pod that it
// changes is left alone for the rest of the pass; the others are not held up by it.
func refresh(p *pass) {
	step := action.Step{Name: StepRefresh}
	options := p.inPlaceOptions()
	for i := range p.pods {
		o := &p.pods[i]
		if o.touched {
			continue
		}
		c := p.change(o.Pod)
		lifecycle.InitialReady(c)
		progress := inplace.Refresh(c, options)
		o.inGrace, o.updating = progress.InGrace, !progress.Complete
		if progress.Reason == inplace.ReasonUnreadable {
			p.beginAgain(o, c)
		}
		p.plan.Wake(progress.WakeAfter)
		if !progress.Complete && progress.Reason != "" {
			p.plan.Wait(progress.Reason, o.Pod.Name, "%s", progress.Message)
		}
		lifecycle.Refresh(c, p.Set.Spec.Lifecycle, progress.Complete)
		if o.updated && o.Lifecycle == contract.LifecyclePreparingUpdate {
			lifecycle.AbandonUpdate(c, p.Set.Spec.Lifecycle)
		}
		if _, ok := o.Pod.Labels[contract.TemplateHashLabel]; !ok && o.Revision != "" {
			c.SetLabel(contract.TemplateHashLabel, o.Revision)
		}
		if c.Empty() {
			p.explainHook(o)
			continue
		}
		o.touched = true
		patches := c.Patches()
		for k := range patches {
			patches[k].AnyVersion = isNew(o)
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: verbOf(c), Object: o.Pod, Patches: patches, Reason: "Refresh", Message: describe(o, c),
		})
	}
	p.plan.Add(step)
}

// beginAgain repeats the update to the pod's own revision when the record of it cannot be read. It
// compares the whole pod with the template.
func (p *pass) beginAgain(o *pod, c *action.PodChange) {
	own := p.revisionWith(o.Revision)
	if u, err := inplace.Diff(own, own, p.inPlaceOptions()); err == nil {
		p.plan.Wake(u.Begin(c, 0))
	}
}

// isNew says that the pod gets its first conditions. They are right whatever its kubelet reports in
// the meantime, and it reports a good deal just then.
func isNew(o *pod) bool {
	return o.Lifecycle == contract.LifecyclePreparingNormal && podstate.Condition(o.Pod, contract.InPlaceUpdateReady) == nil
}

// verbOf names a change by its strongest write.
func verbOf(c *action.PodChange) action.Verb {
	verb := action.PatchMetadata
	for _, patch := range c.Patches() {
		if patch.Subresource == "status" {
			verb = action.PatchStatus
			continue
		}
		if _, ok := patch.Body["spec"]; ok {
			return action.UpdateInPlace
		}
	}
	return verb
}

// describe says in a few words what a refresh changes.
func describe(o *pod, c *action.PodChange) string {
	if state := c.Label(contract.LifecycleStateLabel); state != "" && state != o.Lifecycle {
		return o.Lifecycle + " to " + state
	}
	return "in " + o.Lifecycle
}

// explainHook records which hook holds the pod.
func (p *pass) explainHook(o *pod) {
	l := p.Set.Spec.Lifecycle
	if l == nil {
		return
	}
	switch o.Lifecycle {
	case contract.LifecyclePreparingNormal:
		if l.PreNormal != nil && o.Assigned {
			p.plan.Wait("PreNormalHook", o.Pod.Name, "the preNormal hook has not been taken yet")
		}
	case contract.LifecyclePreparingUpdate:
		p.plan.Wait("InPlaceUpdateHook", o.Pod.Name, "the inPlaceUpdate hook holds the pod before its update")
	case contract.LifecycleUpdated:
		p.plan.Wait("InPlaceUpdateHook", o.Pod.Name, "the inPlaceUpdate hook has not been taken again after the update")
	case contract.LifecyclePreparingDelete:
		p.plan.Wait("PreDeleteHook", o.Pod.Name, "the preDelete hook holds the pod")
	}
}
