package plan

import (
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/revision"
)

// preDownload has the images of the update revision pulled on the nodes of old pods.
func preDownload(p *pass) {
	if p.FeatureGates.PreDownload {
		p.PreDownload(&p.plan, predownload.Rollout{
			Selector:     p.Set.Spec.Selector,
			Template:     p.workload.Revisions.Template,
			Replicas:     p.numbers.replicas,
			Useful:       p.pullingIsUseful,
			UpdatedReady: podstate.CountReady(len(p.pods), p.state),
			Settings:     predownload.AnnotatedSettings(rollingUpdate(p.Set).InPlaceUpdateStrategy, p.Set.Annotations, p.numbers.replicas),
		})
	}
}

// pullingIsUseful reports whether the pods are updated in place, and not all at once.
func (p *pass) pullingIsUseful() bool {
	atOnce := p.numbers.partition == 0 && p.numbers.maxUnavailable >= int(p.numbers.replicas)
	if !p.workload.Policy.InPlace() || atOnce {
		return false
	}
	_, err := p.workload.Revisions.Diff(revision.Hash(p.Chosen.Current), p.Chosen.Update)
	return err == nil
}
