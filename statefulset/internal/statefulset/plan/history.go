package plan

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// defaultHistory is how an absent spec.revisionHistoryLimit reads.
const defaultHistory = 10

// recordRevision writes the template as the newest revision: a new one, or an old one raised to the
// top after a rollback.
func recordRevision(p *pass) {
	p.plan.Add(action.Step{Name: StepRevision, Actions: revision.Record(p.Chosen, "")})
}

// liveRevisions are the short hashes of the revisions that pods are of and of those that were chosen.
func (p *pass) liveRevisions() map[string]bool {
	live := map[string]bool{}
	for i := range p.pods {
		live[podstate.ShortHash(p.pods[i].Pod.Labels[contract.RevisionLabel])] = true
	}
	for _, r := range []*appsv1.ControllerRevision{p.Chosen.Update, p.Chosen.Current} {
		if r != nil {
			live[revision.Hash(r)] = true
		}
	}
	return live
}

// truncateHistory deletes the oldest revisions beyond spec.revisionHistoryLimit that no pod carries.
func truncateHistory(p *pass) {
	limit := valueOr(p.Set.Spec.RevisionHistoryLimit, defaultHistory)
	p.plan.Add(action.Step{Name: StepHistory, Actions: revision.Expire(p.Revisions, p.liveRevisions(), limit)})
}

func (p *pass) updateHash() string {
	if p.Chosen.Update == nil {
		return ""
	}
	return revision.Hash(p.Chosen.Update)
}
