package plan

import (
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// recordRevision writes the template as the newest revision: a new one, or an old one raised to the
// top after a rollback.
func recordRevision(p *pass) {
	p.plan.Add(action.Step{Name: stepRevision, Actions: revision.RecordActions(p.Chosen)})
}

// liveHashes are the short hashes of the revisions that pods are of and of those that were chosen.
func (p *pass) liveHashes() map[string]bool {
	hashes := make([]string, len(p.pods))
	for i := range p.pods {
		hashes[i] = p.pods[i].Revision
	}
	return p.LiveRevisions(hashes)
}

// truncateHistory deletes the oldest revisions beyond spec.revisionHistoryLimit that no pod carries.
func truncateHistory(p *pass) {
	p.plan.Add(action.Step{Name: stepHistory, Actions: revision.TruncateHistory(p.Revisions, p.liveHashes(), p.Set.Spec.RevisionHistoryLimit)})
}

func (p *pass) updateHash() string {
	if p.Chosen.Update == nil {
		return ""
	}
	return revision.Hash(p.Chosen.Update)
}
