package plan

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// recordRevision writes the template as the newest revision: a new one, with the annotations of the set, from which tools
// show why the template was changed, or an old one raised to the top after a rollback.
func recordRevision(p *pass) {
	chosen := p.Chosen
	if chosen.Create {
		chosen.Update = chosen.Update.DeepCopy()
		chosen.Update.Annotations = maps.Clone(p.Set.Annotations)
	}
	p.plan.Add(action.Step{Name: stepRevision, Actions: revision.RecordActions(chosen)})
}

// liveHashes are the short hashes of the revisions that pods are of and of those that pods may be created at.
func (p *pass) liveHashes() map[string]bool {
	hashes := append(make([]string, 0, len(p.pods)+2), p.current)
	for i := range p.pods {
		hashes = append(hashes, p.pods[i].Revision)
	}
	if p.former != nil {
		hashes = append(hashes, revision.Hash(p.former))
	}
	return p.LiveRevisions(hashes)
}

// truncateHistory deletes revisions with the template of the update revision, and the oldest of the others beyond
// spec.revisionHistoryLimit. Those in use count against the limit, and stay.
func truncateHistory(p *pass) {
	live := p.liveHashes()
	limit := ptr.Deref(p.Set.Spec.RevisionHistoryLimit, revision.DefaultHistoryLimit)
	var old []*appsv1.ControllerRevision
	step := action.Step{Name: stepHistory}
	for _, r := range p.Revisions {
		needed := live[revision.Hash(r)]
		switch same := p.hasUpdateTemplate(revision.Hash(r)); {
		case !same && needed:
			limit--
		case !same:
			old = append(old, r)
		case !needed && r.DeletionTimestamp == nil:
			step.Actions = append(step.Actions, action.Action{
				Verb:    action.Delete,
				Object:  r,
				Reason:  "Duplicate",
				Message: "it equals revision " + p.updateHash(),
			})
		}
	}
	step.Actions = append(step.Actions, revision.TruncateHistory(old, live, &limit)...)
	step.Actions = append(step.Actions, p.labelRevisions(step.Actions)...)
	p.plan.Add(step)
}

// labelRevisions gives revisions that stay the label by which tools find the revision of a hash, where it is missing:
// their own name, as the built-in kind does.
func (p *pass) labelRevisions(deleted []action.Action) []action.Action {
	var actions []action.Action
	for _, r := range p.Revisions {
		_, labelled := r.Labels[contract.RevisionLabel]
		isDeleted := slices.ContainsFunc(deleted, func(a action.Action) bool { return a.Object == r })
		if labelled || isDeleted || r.DeletionTimestamp != nil || p.Chosen.Renumber && r == p.Chosen.Update {
			continue
		}
		actions = append(actions, action.Action{
			Verb:    action.PatchMetadata,
			Object:  r,
			Reason:  "Label",
			Message: "its label is missing",
			Patches: []action.Patch{{Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{contract.RevisionLabel: r.Name}}}}},
		})
	}
	return actions
}

func (p *pass) updateHash() string {
	if p.Chosen.Update == nil {
		return ""
	}
	return revision.Hash(p.Chosen.Update)
}
