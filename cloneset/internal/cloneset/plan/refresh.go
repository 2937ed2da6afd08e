package plan

import (
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// refresh lets every pod continue the changes that have begun: updates in place, readiness gates and lifecycle
// states. It acts also when the set is paused or of type OnDelete. A pod that it changes is left alone for the rest
// of the pass; the others are not held up by it. Updated pods that are to go back are not at the wanted revision.
func refresh(p *pass) {
	step := action.Step{Name: stepRefresh, Apart: true}
	back := p.movesBack()
	for i := range p.pods {
		o := &p.pods[i]
		if o.touched {
			continue
		}
		r := p.updates.Refresh(o.State, o.updated && !back)
		o.updating = r.Updating
		if r.Held != nil {
			p.plan.Hold(&step, *r.Held)
		}
		if r.Action != nil {
			o.touched = true
			p.plan.Put(&step, *r.Action)
		}
	}
	p.plan.AddFirst(step)
}

// revisionLabels show the revision of a pod. With feature gate CloneSetShortHash the revision label holds the hash
// alone.
func (p *pass) revisionLabels(name string) map[string]string {
	hash := podstate.ShortHash(name)
	labels := revision.Labels(name)
	if p.FeatureGates.ShortHash {
		labels = revision.Labels(hash)
	}
	labels[contract.TemplateHashLabel] = hash
	return labels
}

// missingTemplateHash completes the labels of a pod that another client made.
func missingTemplateHash(o podstate.State) map[string]string {
	if _, ok := o.Pod.Labels[contract.TemplateHashLabel]; ok || o.Revision == "" {
		return nil
	}
	return map[string]string{contract.TemplateHashLabel: o.Revision}
}
