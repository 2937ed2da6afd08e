package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/inplace"
)

// PodLookup finds the pods that users name in podsToDelete.
type PodLookup interface {
	// Pod returns the pod, or an error of which users read the text.
	Pod(ctx context.Context, key client.ObjectKey) (*corev1.Pod, error)
}

// TemplateValidator asks the cluster what it makes of a pod template. The volumes are names that claim
// templates provide. podtemplate.Checker is one.
type TemplateValidator interface {
	// Validate is what is wrong with the template, in paths that begin at the path. The error says that the
	// cluster did not answer.
	Validate(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, at *field.Path, volumes ...string) (field.ErrorList, error)
	// Default is the template with the cluster's defaults. An invalid template is an error.
	Default(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, volumes ...string) (*corev1.PodTemplateSpec, error)
}

// Reader gathers the facts for one request.
type Reader struct {
	Pods      PodLookup
	Templates TemplateValidator
	// InPlace says what can change on a running pod in this cluster.
	InPlace inplace.Options
	// ForbidPrivileged refuses privileged containers in templates (flag --allow-privileged=false).
	ForbidPrivileged bool
}

// Read gathers what the rules need to know about a change from old, nil on create, to set. It asks for
// no more than the change calls for: newly listed pods, and new or changed templates. The error carries
// an API status and says that the cluster did not answer.
func (r Reader) Read(ctx context.Context, set, old *v1beta1.CloneSet, version string) (Facts, error) {
	facts := Facts{Version: version, InPlace: r.InPlace, Pods: r.newlyListed(ctx, set, old)}
	var err error
	switch {
	case old == nil:
		facts.Template, err = r.faults(ctx, set)
	case !sameTemplate(set, old):
		facts.Template, err = r.newFaults(ctx, set, old)
		facts.Before, facts.After = r.defaulted(ctx, old), r.defaulted(ctx, set)
	}
	if err != nil {
		return facts, apierrors.NewServiceUnavailable(err.Error())
	}
	return facts, nil
}

func (r Reader) faults(ctx context.Context, set *v1beta1.CloneSet) (field.ErrorList, error) {
	at := field.NewPath("spec", "template")
	found, err := r.Templates.Validate(ctx, set.Namespace, &set.Spec.Template, at, claimNames(set)...)
	if err == nil && r.ForbidPrivileged {
		spec := &set.Spec.Template.Spec
		found = append(found, privileged(spec.InitContainers, at.Child("spec", "initContainers"))...)
		found = append(found, privileged(spec.Containers, at.Child("spec", "containers"))...)
	}
	return found, err
}

func privileged(containers []corev1.Container, at *field.Path) field.ErrorList {
	var found field.ErrorList
	for i := range containers {
		if c := containers[i].SecurityContext; c != nil && c.Privileged != nil && *c.Privileged {
			found = append(found, field.Forbidden(at.Index(i).Child("securityContext", "privileged"), "disallowed by cluster policy"))
		}
	}
	return found
}

// newFaults leaves out what is wrong with the stored template as well: rules grow stricter with each
// version of the cluster.
func (r Reader) newFaults(ctx context.Context, set, old *v1beta1.CloneSet) (field.ErrorList, error) {
	found, err := r.faults(ctx, set)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	stored, err := r.faults(ctx, old)
	return withoutKnown(found, stored), err
}

// defaulted is nil where the cluster has no answer.
func (r Reader) defaulted(ctx context.Context, set *v1beta1.CloneSet) *corev1.PodTemplateSpec {
	template, err := r.Templates.Default(ctx, set.Namespace, &set.Spec.Template, claimNames(set)...)
	if err != nil {
		return nil
	}
	return template
}

// newlyListed looks up names that were not listed before. The controller takes names off once their pods
// are gone, and users change other fields meanwhile.
func (r Reader) newlyListed(ctx context.Context, set, old *v1beta1.CloneSet) map[string]PodFact {
	pods := map[string]PodFact{}
	for _, name := range set.Spec.ScaleStrategy.PodsToDelete {
		if old != nil && slices.Contains(old.Spec.ScaleStrategy.PodsToDelete, name) {
			continue
		}
		pod, err := r.Pods.Pod(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name})
		pods[name] = PodFact{Pod: pod, Err: err}
	}
	return pods
}

func sameTemplate(set, old *v1beta1.CloneSet) bool {
	return equality.Semantic.DeepEqual(set.Spec.Template, old.Spec.Template) && slices.Equal(claimNames(set), claimNames(old))
}

func claimNames(set *v1beta1.CloneSet) []string {
	var names []string
	for i := range set.Spec.VolumeClaimTemplates {
		names = append(names, set.Spec.VolumeClaimTemplates[i].Name)
	}
	return names
}
