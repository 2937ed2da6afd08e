package predownload

import (
	"iter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Names of the steps: stepPull has the jobs, stepMark records the decision on the revision.
const (
	stepPull = "pull"
	stepMark = "mark"
)

const (
	// fewReplicas is the number of replicas up to which pulling ahead saves nothing.
	fewReplicas = 3
	// installCheck is when a pass looks whether the kind has been installed.
	installCheck = time.Minute
)

// Rollout is the rollout of a workload, as far as it matters here.
type Rollout struct {
	// Namespace is the workload's, Owner the reference that makes it the controller of jobs.
	Namespace string
	Owner     metav1.OwnerReference
	// Selector is the workload's.
	Selector *metav1.LabelSelector
	// Update is the revision that pods are updated to; it is marked, so it must be written already. From
	// are the revisions that they come from; none when the rollout has ended.
	Update *appsv1.ControllerRevision
	From   []*appsv1.ControllerRevision
	// Template decodes the template of a revision.
	Template func(*appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error)
	// Replicas is how many pods there shall be.
	Replicas int32
	// PerNode is true if each pod has a node of its own: the update continues node by node, and pulling ahead saves time
	// however few there are.
	PerNode bool
	// OldNodes are the nodes of pods that are not of Update, once for each of these, and since when it is there; nil for
	// none. It is asked only where jobs are made or were made.
	OldNodes iter.Seq2[string, time.Time]
	// Useful reports whether pods are updated in place and not all at once. It is asked only where that matters.
	Useful func() bool
	// UpdatedReady counts the ready pods of Update, which prove it.
	UpdatedReady int32
	// Settings are the user's.
	Settings Settings
	// Jobs are the known image pull jobs.
	Jobs Jobs
	// Now is the moment of the pass.
	Now time.Time
}

// Jobs are the known image pull jobs.
type Jobs struct {
	// Version is the version in which the kind is served; empty when it is not.
	Version string
	// Problem is the reason why jobs cannot be read now; empty when they can.
	Problem string
	// Owned are the jobs that the workload controls.
	Owned []*Job
	// Round is the remembered last pull of the images of this update revision; the zero value for none.
	Round Round
	// ProblemReported is true if the user knows that images of this update revision cannot be pulled ahead.
	ProblemReported bool
	// RetryAt is when a failed attempt may be repeated.
	RetryAt time.Time
}

// JobPlan is the part of a plan that manages image pull jobs.
type JobPlan struct {
	// Plan holds the steps, which delay nothing, and the notices and waits for the workload's own plan.
	action.Plan
	// ReportsProblem is true if the plan reports why images cannot be pulled ahead.
	ReportsProblem bool
	// Round is to be remembered once all steps have succeeded; nil leaves it as it is.
	Round *Round
}

// PlanJobs has the images of the update revision pulled on the nodes of old pods, and ends that when the rollout has
// ended. It decides in each pass again: a revision that needed no jobs before may need them with more replicas or
// another partition. Once a revision has its jobs, others follow only for nodes that could not pull or that have come.
func PlanJobs(r Rollout) JobPlan {
	p := &planner{Rollout: r}
	if len(r.From) == 0 {
		if r.Jobs.Round.Nodes != nil {
			p.plan.Round = &Round{}
		}
		p.addSteps(p.deleteJobs(nil))
	} else {
		p.pullAhead()
	}
	return p.plan
}

type planner struct {
	Rollout
	plan JobPlan
}

// pullAhead serves a rollout that is under way.
func (p *planner) pullAhead() {
	_, made := p.Update.Labels[contract.ImagePreDownloadCreatedLabel]
	_, ignored := p.Update.Labels[contract.ImagePreDownloadIgnoredLabel]
	useless := p.Replicas <= fewReplicas && !p.PerNode || !p.Useful()
	switch {
	case p.Jobs.Version == "" || p.Jobs.Problem != "":
		if !useless && !made {
			p.explain()
		}
	case made && !useless:
		p.pullAgain()
	case useless && !made && !ignored:
		p.addSteps(p.deleteJobs(p.Update), p.mark(map[string]any{contract.ImagePreDownloadIgnoredLabel: "true"}, "pulling images before the update is unnecessary"))
	case useless, p.UpdatedReady < p.Settings.MinUpdatedReady:
		p.addSteps(p.deleteJobs(p.Update))
	default:
		jobs, ok := p.createJobs(nil)
		if !ok {
			return
		}
		p.begin(Round{}, p.deleteJobs(p.Update), jobs, p.mark(map[string]any{
			contract.ImagePreDownloadCreatedLabel: "true", contract.ImagePreDownloadIgnoredLabel: nil,
		}, "its images are pulled before the update"))
	}
}

// addSteps adds steps, not before a failed attempt may be repeated.
func (p *planner) addSteps(steps ...action.Step) {
	wanted := action.Plan{}
	for _, step := range steps {
		wanted.Add(step)
	}
	if wanted.Empty() {
		return
	}
	if wait := p.Jobs.RetryAt.Sub(p.Now); wait > 0 {
		p.plan.RequeueWithin(wait)
		return
	}
	p.plan.Steps = wanted.Steps
}

// explain reports to a user who counts on them why no jobs can be made now.
func (p *planner) explain() {
	p.plan.RequeueWithin(installCheck)
	if p.Jobs.Problem != "" {
		p.warn(EventFailed, p.Jobs.Problem)
		return
	}
	if p.Settings.Configured {
		p.warn(EventUnavailable, "images are not pulled ahead of the update: the cluster does not serve ImagePullJob")
	}
}

// warn warns the user, once for each update revision.
func (p *planner) warn(reason, note string) {
	if !p.Jobs.ProblemReported {
		p.plan.ReportsProblem = true
		p.plan.Notices = append(p.plan.Notices, action.Notice{
			Type:   corev1.EventTypeWarning,
			Reason: reason,
			Note:   note,
		})
	}
}

// deleteJobs deletes the workload's jobs, of other revisions than the given one when there is one.
func (p *planner) deleteJobs(but *appsv1.ControllerRevision) action.Step {
	step := action.Step{Name: stepPull}
	for _, job := range p.Jobs.Owned {
		hash, known := job.Labels[contract.RevisionHashLabel]
		if job.DeletionTimestamp != nil || but != nil && (!known || hash == podstate.ShortHash(but.Name)) {
			continue
		}
		step.Actions = append(step.Actions, action.Action{
			Verb:    action.Delete,
			Object:  job.PartialObjectMetadata,
			Reason:  "NoLongerWanted",
			Message: "pods no longer wait for the image",
		})
	}
	return step
}

func (p *planner) mark(labels map[string]any, message string) action.Step {
	return action.Step{Name: stepMark, Actions: []action.Action{{
		Verb:    action.PatchMetadata,
		Object:  p.Update,
		Reason:  "PreDownload",
		Message: message,
		Patches: []action.Patch{{Body: map[string]any{"metadata": map[string]any{"labels": labels}}}},
	}}}
}
