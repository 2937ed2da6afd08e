package plan

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/podstate"
	"github.com/flotilla-project/flotilla/core/rollout"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// StepPull names the steps that pull images ahead, StepMark the one that records it.
const (
	StepPull = "pull"
	StepMark = "mark"
)

const (
	eventPull        = "CreatedImagePullJob"
	eventPullFailed  = "FailedCreateImagePullJob"
	eventUnavailable = "PreDownloadUnavailable"

	// fewReplicas is the number of replicas up to which pulling ahead saves nothing.
	fewReplicas = 3
	// pullTimeout is in seconds, unless the strategy says otherwise.
	pullTimeout = 300
	// pullBackoff is how often a node tries again.
	pullBackoff = 1
	// pullTTL is in seconds.
	pullTTL = 600
	// pullInstallCheck is when a pass looks whether the kind has been installed.
	pullInstallCheck = time.Minute
	// maxName is the longest name that Kubernetes takes.
	maxName = 253
)

// PullJobs is what a plan must know to pull images ahead.
type PullJobs struct {
	// Version is the version in which ImagePullJob is served; empty when it is not.
	Version string
	// Problem says why jobs cannot be read now; empty when they can.
	Problem string
	// Owned are the jobs that the set controls, of which only the metadata is known.
	Owned []*metav1.PartialObjectMetadata
	// Told says that the user knows that images of this update revision cannot be pulled ahead.
	Told bool
	// RetryAt is when a failed attempt may be repeated.
	RetryAt time.Time
}

// String is the plan as text, with what runs aside at its end.
func (p Plan) String() string {
	aside := action.Plan{Steps: p.Aside}
	return p.Plan.String() + aside.String()
}

// ExplainsPulls says that the plan tells the user why images cannot be pulled ahead.
func (p Plan) ExplainsPulls() bool {
	return slices.ContainsFunc(p.Notices, func(n action.Notice) bool {
		return n.Reason == eventPullFailed || n.Reason == eventUnavailable
	})
}

// preDownload has the images of the update revision pulled on the nodes of old pods, and ends that
// when the rollout has ended. It judges each pass anew: a revision that needed no jobs yesterday may
// need them with more replicas or another partition. Jobs are made once for a revision.
func preDownload(p *pass) {
	current, update := p.Chosen.Current, p.Chosen.Update
	switch {
	case !p.Gates.PreDownload || p.plan.Err != nil || current == nil || update == nil:
	case p.Chosen.Create || p.Chosen.Renumber:
		// The revision is written first; its event brings the set back.
	case current.Name == update.Name:
		p.aside(p.endPulls(nil))
	default:
		p.pullAhead(current, update)
	}
}

// pullAhead serves a rollout that is under way.
func (p *pass) pullAhead(current, update *appsv1.ControllerRevision) {
	_, made := update.Labels[contract.ImagePreDownloadCreatedLabel]
	_, ignored := update.Labels[contract.ImagePreDownloadIgnoredLabel]
	useless := made || p.gainsNothing(current, update)
	switch {
	case p.PullJobs.Version == "" || p.PullJobs.Problem != "":
		if !useless {
			p.explainNoPulls()
		}
	case useless && !made && !ignored:
		p.aside(p.endPulls(update), mark(update, map[string]any{contract.ImagePreDownloadIgnoredLabel: "true"}, "pulling images ahead would gain nothing"))
	case useless, p.updatedReady() < minUpdatedReady(p.Set):
		p.aside(p.endPulls(update))
	default:
		jobs, err := p.pulls(current, update)
		if err != nil {
			p.complain(eventPullFailed, err.Error())
			return
		}
		p.aside(p.endPulls(update), jobs, mark(update, map[string]any{
			contract.ImagePreDownloadCreatedLabel: "true", contract.ImagePreDownloadIgnoredLabel: nil,
		}, "its images are pulled ahead"))
	}
}

// aside adds steps that hold up nothing, not before a failed attempt may be repeated.
func (p *pass) aside(steps ...action.Step) {
	wanted := action.Plan{}
	for _, step := range steps {
		wanted.Add(step)
	}
	if wanted.Empty() {
		return
	}
	if wait := p.PullJobs.RetryAt.Sub(p.Now); wait > 0 {
		p.plan.Wake(wait)
		return
	}
	p.plan.Aside = append(p.plan.Aside, wanted.Steps...)
}

// gainsNothing says that the pods are recreated, few, or all updated at once.
func (p *pass) gainsNothing(current, update *appsv1.ControllerRevision) bool {
	if !p.policy().InPlace() || p.numbers.replicas <= fewReplicas {
		return true
	}
	if p.numbers.partition == 0 && maxUnavailableDown(p.Set, p.numbers.replicas) >= p.numbers.replicas {
		return true
	}
	_, err := p.revisions.Diff(podstate.ShortHash(current.Name), update)
	return err != nil
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

func minUpdatedReady(set *v1beta1.CloneSet) int32 {
	if n := inPlaceStrategy(set).ImagePreDownloadMinUpdatedReadyPods; n != nil {
		return *n
	}
	return 0
}

// explainNoPulls tells a user who counts on them why no jobs can be made now.
func (p *pass) explainNoPulls() {
	p.plan.Wake(pullInstallCheck)
	if p.PullJobs.Problem != "" {
		p.complain(eventPullFailed, p.PullJobs.Problem)
		return
	}
	s := inPlaceStrategy(p.Set)
	if s.ImagePreDownloadParallelism != nil || s.ImagePreDownloadTimeoutSeconds != nil || s.ImagePreDownloadMinUpdatedReadyPods != nil {
		p.complain(eventUnavailable, "images are not pulled ahead of the update: the cluster does not serve ImagePullJob")
	}
}

// complain warns the user, once for each update revision.
func (p *pass) complain(reason, note string) {
	if !p.PullJobs.Told {
		p.plan.Notices = append(p.plan.Notices, action.Notice{Type: corev1.EventTypeWarning, Reason: reason, Note: note})
	}
}

// endPulls deletes the jobs of the set, of other revisions than the given one when there is one.
func (p *pass) endPulls(but *appsv1.ControllerRevision) action.Step {
	step := action.Step{Name: StepPull}
	for _, job := range p.PullJobs.Owned {
		hash, known := job.Labels[contract.RevisionHashLabel]
		if job.DeletionTimestamp != nil || but != nil && (!known || hash == podstate.ShortHash(but.Name)) {
			continue
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Delete, Object: job, Reason: "NoLongerWanted", Message: "no pod waits for the image any more",
		})
	}
	return step
}

func mark(r *appsv1.ControllerRevision, labels map[string]any, message string) action.Step {
	return action.Step{Name: StepMark, Actions: []action.Action{{
		Verb: action.PatchMetadata, Object: r, Reason: "PreDownload", Message: message,
		Patches: []action.Patch{{Body: map[string]any{"metadata": map[string]any{"labels": labels}}}},
	}}}
}

// pulls creates one job for each container whose image changes, but for those that exist.
func (p *pass) pulls(current, update *appsv1.ControllerRevision) (action.Step, error) {
	step := action.Step{Name: StepPull}
	before, err := p.revisions.Template(current)
	if err != nil {
		return step, err
	}
	after, err := p.revisions.Template(update)
	if err != nil {
		return step, err
	}
	exists := map[string]bool{}
	for _, job := range p.PullJobs.Owned {
		exists[job.Name] = job.DeletionTimestamp == nil
	}
	images := map[string]string{}
	for i := range before.Spec.Containers {
		images[before.Spec.Containers[i].Name] = before.Spec.Containers[i].Image
	}
	for i := range after.Spec.Containers {
		c := &after.Spec.Containers[i]
		name := pullName(update.Name, c.Name)
		if images[c.Name] == c.Image || exists[name] {
			continue
		}
		job, err := p.pull(name, c.Image, update, after)
		if err != nil {
			return step, err
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Create, Object: job, Reason: "PreDownload", Message: "image " + c.Image,
			Event: &action.Event{Succeeded: eventPull, Note: fmt.Sprintf("created image pull job %s for image %s", name, c.Image), Failed: eventPullFailed},
		})
	}
	return step, nil
}

// pull is the job that pulls an image on the nodes that run pods of other revisions.
func (p *pass) pull(name, image string, update *appsv1.ControllerRevision, template *corev1.PodTemplateSpec) (action.Object, error) {
	hash := podstate.ShortHash(update.Name)
	labels := copyOf(template.Labels)
	labels[contract.RevisionHashLabel] = hash
	strategy := inPlaceStrategy(p.Set)
	timeout := int32(pullTimeout)
	if t := strategy.ImagePreDownloadTimeoutSeconds; t != nil {
		timeout = *t
	}
	parallelism := intstr.FromInt32(1)
	if n := strategy.ImagePreDownloadParallelism; n != nil {
		parallelism = *n
	}
	spec := contract.ImagePullJobSpec{
		Image: image, PodSelector: p.oldPods(update.Name), Parallelism: &parallelism,
		PullPolicy:       contract.ImagePullJobPullPolicy{TimeoutSeconds: timeout, BackoffLimit: pullBackoff},
		CompletionPolicy: contract.ImagePullJobCompletionPolicy{Type: contract.ImagePullJobAlways, TTLSecondsAfterFinished: pullTTL},
		SandboxConfig:    contract.ImagePullJobSandboxConfig{Labels: labels, Annotations: template.Annotations},
	}
	for _, secret := range template.Spec.ImagePullSecrets {
		spec.PullSecrets = append(spec.PullSecrets, secret.Name)
	}
	return contract.NewImagePullJob(p.PullJobs.Version, metav1.ObjectMeta{
		Name: name, Namespace: p.Set.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{controllerRef(p.Set)},
	}, spec)
}

// oldPods selects the pods of the set that are not of the revision, whichever form their label has.
// A name that is too long for a label stands on no pod.
func (p *pass) oldPods(revision string) *metav1.LabelSelector {
	selector := p.Set.Spec.Selector.DeepCopy()
	if selector == nil {
		selector = &metav1.LabelSelector{}
	}
	values := []string{podstate.ShortHash(revision)}
	if len(revision) <= maxLabelValue {
		values = []string{revision, podstate.ShortHash(revision)}
	}
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: contract.RevisionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: values,
	})
	return selector
}

// pullName is <revision>-<container>; where that is too long, its beginning and a hash of it.
func pullName(revision, container string) string {
	name := revision + "-" + container
	if len(name) <= maxName {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // the hash never returns an error
	end := fmt.Sprintf("-%08x", h.Sum32())
	return strings.TrimRight(name[:maxName-len(end)], "-.") + end
}
