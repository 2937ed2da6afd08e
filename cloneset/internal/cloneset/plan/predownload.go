package plan

import (
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// preDownload has the images of the update revision pulled on the nodes of old pods.
func preDownload(p *pass) {
	if p.FeatureGates.PreDownload {
		p.PreDownload(&p.plan, predownload.Rollout{
			Selector:     p.Set.Spec.Selector,
			Template:     p.revisions.Template,
			Replicas:     p.numbers.replicas,
			Useful:       p.pullingIsUseful,
			UpdatedReady: podstate.CountReady(len(p.pods), p.state),
			Settings:     predownload.SettingsOf(rollingUpdate(p.Set).InPlaceUpdateStrategy),
		})
	}
}

// pullingIsUseful reports whether the pods are updated in place, and not all at once.
func (p *pass) pullingIsUseful() bool {
	if !p.policy().InPlace() || p.numbers.partition == 0 && maxUnavailableDown(p.Set, p.numbers.replicas) >= p.numbers.replicas {
		return false
	}
	_, err := p.revisions.Diff(podstate.ShortHash(p.Chosen.Current.Name), p.Chosen.Update)
	return err == nil
}

// maxUnavailableDown is maxUnavailable with a percentage rounded down.
func maxUnavailableDown(set *v1beta1.CloneSet, replicas int32) int32 {
	m := rollingUpdate(set).MaxUnavailable
	if m == nil {
		return 0 // 20%, which is never all
	}
	n, err := rollout.Scaled("maxUnavailable", *m, replicas, rollout.RoundDown)
	if err != nil {
		return 0 // readNumbers has reported it
	}
	return n
}

func inPlaceStrategy(set *v1beta1.CloneSet) workload.InPlaceUpdateStrategy {
	return ptr.Deref(rollingUpdate(set).InPlaceUpdateStrategy, workload.InPlaceUpdateStrategy{})
}
