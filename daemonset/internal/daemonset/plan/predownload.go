package plan

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// preDownload has the images of the update revision pulled on the nodes of old pods, whether these are updated in place
// or recreated.
func preDownload(p *pass) {
	if !p.FeatureGates.PreDownload {
		return
	}
	p.PreDownload(&p.plan, predownload.Rollout{
		Selector:     p.Set.Spec.Selector,
		Template:     p.workload.Revisions.Template,
		Replicas:     int32(p.desired),
		PerNode:      true,
		From:         p.oldRevisions(),
		Useful:       func() bool { return p.numbers.partition > 0 || p.numbers.maxUnavailable < p.desired },
		UpdatedReady: podstate.CountReady(len(p.pods), p.state),
		Settings:     predownload.AnnotatedSettings(nil, p.Set.Annotations, int32(p.desired)),
	})
}

// oldRevisions are the revisions that the update takes pods from. With type OnDelete there are none.
func (p *pass) oldRevisions() []*appsv1.ControllerRevision {
	if onDelete(p.Set) {
		return nil
	}
	hashes := map[string]bool{}
	for i := range p.pods {
		if o := &p.pods[i]; o.Active && !o.foreign && !o.updated {
			hashes[o.Revision] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(p.Revisions), func(r *appsv1.ControllerRevision) bool { return !hashes[revision.Hash(r)] })
}
