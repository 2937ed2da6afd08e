package plan

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// recordRevision writes the template as the newest revision: a new one, or an old one raised to the top after a
// rollback.
func recordRevision(p *pass) {
	p.plan.Add(action.Step{Name: stepRevision, Actions: revision.RecordActions(p.Chosen)})
}

// previousRevision is the newest revision but the update revision; nil for none.
func (p *pass) previousRevision() *appsv1.ControllerRevision {
	var newest *appsv1.ControllerRevision
	for _, r := range p.Revisions {
		if p.hasUpdateTemplate(revision.Hash(r)) || r.DeletionTimestamp != nil {
			continue
		}
		if newest == nil || cmp.Or(cmp.Compare(r.Revision, newest.Revision), cmp.Compare(r.Name, newest.Name)) > 0 {
			newest = r
		}
	}
	return newest
}

// liveHashes are the short hashes of the revisions that pods are of and of those that pods may be created at.
func (p *pass) liveHashes() map[string]bool {
	hashes := make([]string, 0, len(p.pods)+1)
	for i := range p.pods {
		hashes = append(hashes, p.pods[i].Revision)
	}
	if p.previous != nil {
		hashes = append(hashes, revision.Hash(p.previous))
	}
	return p.LiveRevisions(hashes)
}

// truncateHistory deletes the oldest revisions beyond spec.revisionHistoryLimit that no pod needs.
func truncateHistory(p *pass) {
	p.plan.Add(action.Step{Name: stepHistory, Actions: revision.TruncateHistory(p.Revisions, p.liveHashes(), p.Set.Spec.RevisionHistoryLimit)})
}

func (p *pass) updateHash() string {
	if p.Chosen.Update == nil {
		return ""
	}
	return revision.Hash(p.Chosen.Update)
}
