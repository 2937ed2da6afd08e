package model

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
)

// Plan is the plan of one pass over a workload.
type Plan struct {
	action.Plan
	// PreDownload is the plan for pulling images ahead. Its steps delay nothing: they run after the others, whatever
	// became of those, and their failures are no failures of the pass.
	PreDownload predownload.JobPlan
	// Err is the reason why the spec cannot be followed, in words for its author. The plan then only keeps running pods in
	// order.
	Err error
	// MaxUnavailable is how many pods an update may have out of service, as a number. No write depends on it.
	MaxUnavailable int32
}

// String is the plan as text, with the steps of PreDownload at its end.
func (p Plan) String() string {
	aside := action.Plan{Steps: p.PreDownload.Steps}
	return p.Plan.String() + aside.String()
}

// PreDownload has the images of the update revision pulled on the nodes of old pods. The rollout has the facts that the
// snapshot lacks. A revision that is not written yet waits for the pass that its event brings.
func (s *Snapshot[W]) PreDownload(p *Plan, r predownload.Rollout) {
	c := s.Chosen
	if p.Err != nil || c.Current == nil || c.Update == nil || c.Create || c.Renumber {
		return
	}
	r.Namespace = s.Set.GetNamespace()
	r.Owner = s.Owner
	r.Update = c.Update
	r.Jobs, r.Now, r.OldNodes = s.PullJobs, s.Now, s.oldNodes
	if c.Current.Name != c.Update.Name {
		r.From = []*appsv1.ControllerRevision{c.Current}
	}
	p.PreDownload = predownload.PlanJobs(r)
	p.Notices = append(p.Notices, p.PreDownload.Notices...)
	p.RequeueWithin(p.PreDownload.RequeueAfter)
}

// oldNodes yields the nodes of running pods that are not of the update revision, and since when the pod is there.
func (s *Snapshot[W]) oldNodes(yield func(string, time.Time) bool) {
	update := podstate.ShortHash(s.Chosen.Update.Name)
	for _, pod := range s.Pods {
		active := podstate.IsActive(pod)
		if active && pod.Spec.NodeName != "" && podstate.ShortHash(pod.Labels[contract.RevisionLabel]) != update && !yield(pod.Spec.NodeName, cameAt(pod)) {
			return
		}
	}
}

// cameAt is when the pod got its node.
func cameAt(pod *corev1.Pod) time.Time {
	if c := podstate.Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}
