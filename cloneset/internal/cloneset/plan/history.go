package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// adoptRevisions takes revisions without a controller that the set cannot do without: a pod of an unknown revision
// could not be updated in place.
func adoptRevisions(p *pass) {
	p.plan.Add(action.Step{Name: stepOwn, Actions: revision.Adopt(p.Chosen, p.OrphanRevisions, p.liveHashes(), p.Owner)})
}

// recordRevision writes the template as the newest revision.
func recordRevision(p *pass) {
	p.plan.Add(action.Step{Name: stepRevision, Actions: revision.RecordActions(p.Chosen)})
}

// truncateHistory deletes the oldest revisions beyond spec.revisionHistoryLimit that no pod needs.
func truncateHistory(p *pass) {
	p.plan.Add(action.Step{Name: stepHistory, Actions: revision.TruncateHistory(p.Revisions, p.liveHashes(), p.Set.Spec.RevisionHistoryLimit)})
}

// truncateNames removes the names of pods that are gone from scaleStrategy.podsToDelete.
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
	p.plan.Add(action.Step{Name: stepNames, Actions: []action.Action{{
		Verb:    action.PatchSpec,
		Object:  p.Set,
		Reason:  "PodsGone",
		Message: "pods of podsToDelete are gone",
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
			"spec": map[string]any{"scaleStrategy": map[string]any{"podsToDelete": kept}},
		}}},
	}}})
}

// withClaimsHash gives a former revision that is wanted again the hash of the present claim templates, which is about
// to be written: pods are compared with the revision as it will be.
func withClaimsHash(s Snapshot) Snapshot {
	if s.Chosen.SetClaimsHash {
		s.Chosen.Update = s.Chosen.Update.DeepCopy()
		metav1.SetMetaDataAnnotation(&s.Chosen.Update.ObjectMeta, contract.VolumeClaimTemplateHashAnnotation, s.Chosen.ClaimsHash)
	}
	return s
}
