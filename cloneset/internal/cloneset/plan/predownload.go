package plan

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// String is the plan as text, with what runs aside at its end.
func (p Plan) String() string {
	aside := action.Plan{Steps: p.Pulls.Steps}
	return p.Plan.String() + aside.String()
}

// preDownload has the images of the update revision pulled on the nodes of old pods. A revision that is
// not written yet waits for the pass that its event brings.
func preDownload(p *pass) {
	c := p.Chosen
	if !p.Gates.PreDownload || p.plan.Err != nil || c.Current == nil || c.Update == nil || c.Create || c.Renumber {
		return
	}
	rollout := predownload.Rollout{
		Namespace: p.Set.Namespace, Owner: controllerRef(p.Set), Selector: p.Set.Spec.Selector,
		Update: c.Update, Template: p.revisions.Template, Replicas: p.numbers.replicas,
		Useful: p.pullingIsUseful, UpdatedReady: p.updatedReady(), Settings: pullSettings(p.Set),
		Jobs: p.PullJobs, Now: p.Now,
	}
	if c.Current.Name != c.Update.Name {
		rollout.From = []*appsv1.ControllerRevision{c.Current}
	}
	p.plan.Pulls = predownload.Plan(rollout)
	p.plan.Notices = append(p.plan.Notices, p.plan.Pulls.Notices...)
	p.plan.Wake(p.plan.Pulls.WakeAfter)
}

// pullingIsUseful says that the pods are updated in place, and not all at once.
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
	n, err := rollout.Scaled("maxUnavailable", *m, replicas, rollout.Down)
	if err != nil {
		return 0 // readNumbers has reported it
	}
	return n
}

// updatedReady counts the pods that prove the update revision.
func (p *pass) updatedReady() int32 {
	n := int32(0)
	for i := range p.pods {
		if p.pods[i].updated && p.pods[i].Ready {
			n++
		}
	}
	return n
}

func inPlaceStrategy(set *v1beta1.CloneSet) workload.InPlaceUpdateStrategy {
	if s := rollingUpdate(set).InPlaceUpdateStrategy; s != nil {
		return *s
	}
	return workload.InPlaceUpdateStrategy{}
}

func pullSettings(set *v1beta1.CloneSet) predownload.Settings {
	s := inPlaceStrategy(set)
	settings := predownload.Settings{
		Parallelism: s.ImagePreDownloadParallelism, TimeoutSeconds: s.ImagePreDownloadTimeoutSeconds,
		Asked: s.ImagePreDownloadParallelism != nil || s.ImagePreDownloadTimeoutSeconds != nil || s.ImagePreDownloadMinUpdatedReadyPods != nil,
	}
	if n := s.ImagePreDownloadMinUpdatedReadyPods; n != nil {
		settings.MinUpdatedReady = *n
	}
	return settings
}
