package podtemplate

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/workloads/validation"
)

// Cluster says what the cluster makes of a pod template. The volumes are names that claim templates
// provide. A Checker asks the API server.
type Cluster interface {
	// Validate returns what is wrong with the template, in paths that begin at the path. The error says that the
	// cluster did not answer.
	Validate(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, at *field.Path, volumes ...string) (field.ErrorList, error)
	// Default returns the template with the cluster's defaults. An invalid template is an error.
	Default(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, volumes ...string) (*corev1.PodTemplateSpec, error)
}

// Judge judges the pod templates of workloads on admission.
type Judge struct {
	// Cluster holds the rules.
	Cluster Cluster
	// ForbidPrivileged refuses privileged containers (flag --allow-privileged=false).
	ForbidPrivileged bool
}

// Template is a pod template, with the volumes that it finds when its pods are made.
type Template struct {
	// Pod is the template.
	Pod *corev1.PodTemplateSpec
	// Volumes are the names of claim templates.
	Volumes []string
}

// ClaimVolumes returns the names of claim templates, for Template.
func ClaimVolumes(claims []corev1.PersistentVolumeClaim) []string {
	var names []string
	for i := range claims {
		names = append(names, claims[i].Name)
	}
	return names
}

// Judgement is what was found.
type Judgement struct {
	// Errors are what is wrong with a new or changed template. What is wrong with the stored one as well
	// is not among them: rules grow stricter with each version of the cluster.
	Errors field.ErrorList
	// Before and After are the old and the new template with the cluster's defaults. Nil means that they
	// are unknown, or that the template did not change.
	Before, After *corev1.PodTemplateSpec
}

// Judge judges the change from old, nil on create, to now. An unchanged template is not looked at. The
// error carries an API status and says that the cluster did not answer.
func (j Judge) Judge(ctx context.Context, namespace string, now Template, old *Template, at *field.Path) (Judgement, error) {
	var found Judgement
	if old != nil && equality.Semantic.DeepEqual(now.Pod, old.Pod) && slices.Equal(now.Volumes, old.Volumes) {
		return found, nil
	}
	var err error
	if found.Errors, err = j.faults(ctx, namespace, now, at); err != nil {
		return found, apierrors.NewServiceUnavailable(err.Error())
	}
	if old == nil {
		return found, nil
	}
	if len(found.Errors) > 0 {
		stored, err := j.faults(ctx, namespace, *old, at)
		if err != nil {
			return found, apierrors.NewServiceUnavailable(err.Error())
		}
		found.Errors = validation.WithoutStored(found.Errors, stored)
	}
	found.Before, found.After = j.defaulted(ctx, namespace, *old), j.defaulted(ctx, namespace, now)
	return found, nil
}

func (j Judge) faults(ctx context.Context, namespace string, t Template, at *field.Path) (field.ErrorList, error) {
	found, err := j.Cluster.Validate(ctx, namespace, t.Pod, at, t.Volumes...)
	if err == nil && j.ForbidPrivileged {
		found = append(found, privileged(t.Pod.Spec.InitContainers, at.Child("spec", "initContainers"))...)
		found = append(found, privileged(t.Pod.Spec.Containers, at.Child("spec", "containers"))...)
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

// defaulted returns nil where the cluster has no answer.
func (j Judge) defaulted(ctx context.Context, namespace string, t Template) *corev1.PodTemplateSpec {
	template, err := j.Cluster.Default(ctx, namespace, t.Pod, t.Volumes...)
	if err != nil {
		return nil
	}
	return template
}
