package plan

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/revision"
)

// recordRevision writes the template as the newest revision: a new one, or an old one raised to the
// top after a rollback.
func recordRevision(p *pass) {
	c := p.Chosen
	if c.Update == nil {
		return
	}
	step := action.Step{Name: StepRevision}
	switch {
	case c.Create:
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Create, Object: c.Update, Reason: "NewTemplate", Message: "revision " + strconv.FormatInt(c.Update.Revision, 10),
		})
	case c.Renumber:
		body := map[string]any{"revision": c.Number}
		if c.SetClaimsHash {
			body["metadata"] = map[string]any{"annotations": map[string]any{
				contract.VolumeClaimTemplateHashAnnotation: p.ClaimsHash,
			}}
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.PatchSpec, Object: c.Update, Reason: "Rollback",
			Message: "the template equals this revision again", Patches: []action.Patch{{Body: body}},
		})
	}
	p.plan.Add(step)
}

// truncateHistory deletes the oldest revisions beyond spec.revisionHistoryLimit that no pod needs.
func truncateHistory(p *pass) {
	limit := int32(10)
	if l := p.Set.Spec.RevisionHistoryLimit; l != nil {
		limit = *l
	}
	step := action.Step{Name: StepHistory}
	for _, r := range revision.Truncate(p.Revisions, p.live(), limit) {
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Delete, Object: r, Reason: "HistoryLimit", Message: "beyond spec.revisionHistoryLimit",
		})
	}
	p.plan.Add(step)
}

// truncateNames removes the names from scaleStrategy.podsToDelete whose pods are gone.
func truncateNames(p *pass) {
	names := p.Set.Spec.ScaleStrategy.PodsToDelete
	if len(names) == 0 {
		return
	}
	active := map[string]bool{}
	for i := range p.pods {
		active[p.pods[i].Pod.Name] = true
	}
	kept := []any{}
	for _, name := range names {
		if active[name] {
			kept = append(kept, name)
		}
	}
	if len(kept) == len(names) {
		return
	}
	p.plan.Add(action.Step{Name: StepNames, Actions: []action.Action{{
		Verb: action.PatchSpec, Object: p.Set, Reason: "PodsGone", Message: "pods of podsToDelete are gone",
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
			"spec": map[string]any{"scaleStrategy": map[string]any{"podsToDelete": kept}},
		}}},
	}}})
}
