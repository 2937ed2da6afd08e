package predownload

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

const (
	// pullTimeout is in seconds, unless the user says otherwise.
	pullTimeout = 300
	// pullBackoff is how often a node tries again.
	pullBackoff = 1
	// pullTTL is in seconds.
	pullTTL = 600
)

// createJobs creates one job for each container and native sidecar whose image changes for any pod, but for those that exist.
func (p *planner) createJobs() (action.Step, error) {
	step := action.Step{Name: stepPull}
	template, err := p.Template(p.Update)
	if err != nil {
		return step, err
	}
	known, err := p.known()
	if err != nil {
		return step, err
	}
	exists := map[string]bool{}
	for _, job := range p.Jobs.Owned {
		exists[job.Name] = job.DeletionTimestamp == nil
	}
	for _, c := range podspec.LongRunning(&template.Spec) {
		name := jobName(p.Update.Name, c.Name)
		if known(c) || exists[name] {
			continue
		}
		job, err := p.job(name, c.Image, template)
		if err != nil {
			return step, err
		}
		step.Actions = append(step.Actions, action.Action{
			Verb: action.Create, Object: job, Reason: "PreDownload", Message: "image " + c.Image,
			Event: &action.Event{Succeeded: EventCreated, Note: fmt.Sprintf("created image pull job %s for image %s", name, c.Image), Failed: EventFailed},
		})
	}
	return step, nil
}

// known says of a container whether it has its image in all revisions that pods come from.
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
		Image: image, PodSelector: p.oldPods(), Parallelism: &parallelism,
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
	name, hash := p.Update.Name, podstate.ShortHash(p.Update.Name)
	values := []string{hash}
	if len(name) <= validation.LabelValueMaxLength {
		values = []string{name, hash}
	}
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: contract.RevisionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: values,
	})
	return selector
}

// jobName is <revision>-<container>; where that is too long, its beginning and a hash of it.
func jobName(revision, container string) string {
	name := revision + "-" + container
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // the hash never returns an error
	end := fmt.Sprintf("-%08x", h.Sum32())
	return strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(end)], "-.") + end
}
