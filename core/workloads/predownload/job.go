package predownload

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

const (
	// pullTimeout is in seconds, unless the user sets another one.
	pullTimeout = 300
	// pullBackoff is how often a node tries again.
	pullBackoff = 1
	// pullTTL is in seconds.
	pullTTL = 600
)

// Job is an image pull job, as far as plans read it.
type Job struct {
	*metav1.PartialObjectMetadata
	// Image is the reference that it pulls.
	Image string
	// Ended is true if it pulls no more, Completed is the time since when; zero for unknown.
	Ended     bool
	Completed time.Time
	// Desired is how many nodes were to pull the image, and Lacking how many of them have not, of a job that has ended.
	Desired, Lacking int64
}

// ReadJob reads a job.
func ReadJob(from *unstructured.Unstructured) *Job {
	job := &Job{PartialObjectMetadata: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace:         from.GetNamespace(),
		Name:              from.GetName(),
		UID:               from.GetUID(),
		ResourceVersion:   from.GetResourceVersion(),
		Labels:            from.GetLabels(),
		OwnerReferences:   from.GetOwnerReferences(),
		CreationTimestamp: from.GetCreationTimestamp(),
		DeletionTimestamp: from.GetDeletionTimestamp(),
	}}}
	job.SetGroupVersionKind(from.GroupVersionKind())
	spec, _ := from.Object["spec"].(map[string]any)
	job.Image, _ = spec["image"].(string)
	status, _ := from.Object["status"].(map[string]any)
	completed, _ := status["completionTime"].(string)
	if job.Ended = completed != ""; job.Ended {
		job.Completed, _ = time.Parse(time.RFC3339, completed)
		job.Desired, _ = status["desired"].(int64)
		succeeded, _ := status["succeeded"].(int64)
		job.Lacking = job.Desired - succeeded
	}
	return job
}

// createJobs creates one job for each container and native sidecar with an image that changes for any pod, but for
// those that exist; with a cause to pull again, further jobs. It returns false if that is not possible; a warning then
// names the cause.
func (p *planner) createJobs(again *cause) (action.Step, bool) {
	step := action.Step{Name: stepPull}
	template, known, err := p.images()
	for _, c := range podspec.LongRunning(&template.Spec) {
		name, wanted := p.nextName(c, again)
		if err != nil || known(c) || !wanted {
			continue
		}
		var job action.Object
		if job, err = p.job(name, c.Image, template); err == nil {
			step.Actions = append(step.Actions, createJob(job, c.Image, again))
		}
	}
	if err != nil {
		p.warn(EventFailed, err.Error())
	}
	return step, err == nil
}

func createJob(job action.Object, image string, again *cause) action.Action {
	what := "image " + image
	if again != nil {
		what += " again: " + again.why
	}
	return action.Action{
		Verb:    action.Create,
		Object:  job,
		Reason:  "PreDownload",
		Message: what,
		Event: &action.Event{
			Succeeded: EventCreated,
			Note:      fmt.Sprintf("created image pull job %s for %s", job.GetName(), what),
			Failed:    EventFailed,
		},
	}
}

// nextName returns the name of the next job for the image of a container, and whether there is to be one.
func (p *planner) nextName(c *corev1.Container, again *cause) (string, bool) {
	exists := map[string]bool{}
	for _, job := range p.Jobs.Owned {
		exists[job.Name] = again != nil || job.DeletionTimestamp == nil
	}
	if again == nil {
		name := jobName(p.Update.Name, c.Name, 1)
		return name, !exists[name]
	}
	n := 2
	for exists[jobName(p.Update.Name, c.Name, n)] {
		n++
	}
	return jobName(p.Update.Name, c.Name, n), again.concerns(c.Image)
}

// images returns the template of the update revision, which is empty after an error, and the function from known.
func (p *planner) images() (*corev1.PodTemplateSpec, func(*corev1.Container) bool, error) {
	known, err := p.known()
	if err != nil {
		return &corev1.PodTemplateSpec{}, nil, err
	}
	template, err := p.Template(p.Update)
	if err != nil {
		return &corev1.PodTemplateSpec{}, nil, err
	}
	return template, known, nil
}

// known returns a function that reports whether a container has its image in all revisions that pods come from.
func (p *planner) known() (func(*corev1.Container) bool, error) {
	var before []map[string]string
	for _, r := range p.From {
		template, err := p.Template(r)
		if err != nil {
			return nil, err
		}
		images := map[string]string{}
		for _, c := range podspec.LongRunning(&template.Spec) {
			images[c.Name] = c.Image
		}
		before = append(before, images)
	}
	return func(c *corev1.Container) bool {
		for _, images := range before {
			if images[c.Name] != c.Image {
				return false
			}
		}
		return true
	}, nil
}

// job pulls an image on the nodes that run pods of other revisions.
func (p *planner) job(name, image string, template *corev1.PodTemplateSpec) (action.Object, error) {
	labels := map[string]string{}
	maps.Copy(labels, template.Labels)
	labels[contract.RevisionHashLabel] = podstate.ShortHash(p.Update.Name)
	timeout := int32(pullTimeout)
	if t := p.Settings.TimeoutSeconds; t != nil {
		timeout = *t
	}
	parallelism := intstr.FromInt32(1)
	if n := p.Settings.Parallelism; n != nil {
		parallelism = *n
	}
	spec := contract.ImagePullJobSpec{
		Image:            image,
		PodSelector:      p.oldPods(),
		Parallelism:      &parallelism,
		PullPolicy:       contract.ImagePullJobPullPolicy{TimeoutSeconds: timeout, BackoffLimit: pullBackoff},
		CompletionPolicy: contract.ImagePullJobCompletionPolicy{Type: contract.ImagePullJobAlways, TTLSecondsAfterFinished: pullTTL},
		SandboxConfig:    contract.ImagePullJobSandboxConfig{Labels: labels, Annotations: template.Annotations},
	}
	for _, secret := range template.Spec.ImagePullSecrets {
		spec.PullSecrets = append(spec.PullSecrets, secret.Name)
	}
	return contract.NewImagePullJob(p.Jobs.Version, metav1.ObjectMeta{
		Name: name, Namespace: p.Namespace, Labels: labels, OwnerReferences: []metav1.OwnerReference{p.Owner},
	}, spec)
}

// oldPods selects the pods that are not of the update revision, whichever form their label has. A name
// that is too long for a label stands on no pod.
func (p *planner) oldPods() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	if p.Selector != nil {
		selector = p.Selector.DeepCopy()
	}
	name := p.Update.Name
	hash := podstate.ShortHash(p.Update.Name)
	values := []string{hash}
	if len(name) <= validation.LabelValueMaxLength {
		values = []string{name, hash}
	}
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key:      contract.RevisionLabel,
		Operator: metav1.LabelSelectorOpNotIn,
		Values:   values,
	})
	return selector
}

// jobName is <revision>-<container>, from the second job on with its number; where that is too long, its beginning and
// a hash of it.
func jobName(revision, container string, number int) string {
	name := revision + "-" + container
	if number > 1 {
		name += "-" + strconv.Itoa(number)
	}
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // the hash never returns an error
	end := fmt.Sprintf("-%08x", h.Sum32())
	return strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(end)], "-.") + end
}
