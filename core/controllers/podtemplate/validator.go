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

// Cluster validates and defaults pod templates as the cluster does. The volumes are names that claim templates provide.
// A Checker asks the API server.
type Cluster interface {
	// Validate returns the errors in the template, with field paths below at. An error means that the cluster did not
	// answer.
	Validate(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, at *field.Path, volumes ...string) (field.ErrorList, error)
	// Default returns the template with the cluster's defaults. An invalid template is an error.
	Default(ctx context.Context, namespace string, template *corev1.PodTemplateSpec, volumes ...string) (*corev1.PodTemplateSpec, error)
}

// Validator validates the pod templates of workloads on admission.
type Validator struct {
	// Cluster has the rules.
	Cluster Cluster
	// ForbidPrivileged refuses privileged containers (flag --allow-privileged=false).
	ForbidPrivileged bool
}

// Template is a pod template, with the volumes that its pods get from claim templates.
type Template struct {
	// Pod is the template.
	Pod *corev1.PodTemplateSpec
	// Volumes are the names of claim templates.
	Volumes []string
}

// ClaimVolumes returns the names of the claim templates, for Template.Volumes.
func ClaimVolumes(claims []corev1.PersistentVolumeClaim) []string {
	var names []string
	for i := range claims {
		names = append(names, claims[i].Name)
	}
	return names
}

// Change is a validated change of a template.
type Change struct {
	// Errors are the errors in a new or changed template, except for errors that the stored one has, too: rules grow
	// stricter with each version of the cluster.
	Errors field.ErrorList
	// Before and After are the old and the new template with the cluster's defaults. Nil if they are unknown or the
	// template did not change.
	Before, After *corev1.PodTemplateSpec
}

// ValidateChange validates the change from old, nil on create, to now. An unchanged template is not validated. The
// error carries an API status and means that the cluster did not answer.
func (v Validator) ValidateChange(ctx context.Context, namespace string, now Template, old *Template, at *field.Path) (Change, error) {
	var found Change
	if old != nil && equality.Semantic.DeepEqual(now.Pod, old.Pod) && slices.Equal(now.Volumes, old.Volumes) {
		return found, nil
	}
	var err error
	if found.Errors, err = v.validate(ctx, namespace, now, at); err != nil {
		return found, apierrors.NewServiceUnavailable(err.Error())
	}
	if old == nil {
		return found, nil
	}
	if len(found.Errors) > 0 {
		stored, err := v.validate(ctx, namespace, *old, at)
		if err != nil {
			return found, apierrors.NewServiceUnavailable(err.Error())
		}
		found.Errors = validation.WithoutStored(found.Errors, stored)
	}
	found.Before = v.defaulted(ctx, namespace, *old)
	found.After = v.defaulted(ctx, namespace, now)
	return found, nil
}

func (v Validator) validate(ctx context.Context, namespace string, t Template, at *field.Path) (field.ErrorList, error) {
	found, err := v.Cluster.Validate(ctx, namespace, t.Pod, at, t.Volumes...)
	if err == nil && v.ForbidPrivileged {
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

// defaulted returns the template with the cluster's defaults, or nil if the cluster has no answer.
func (v Validator) defaulted(ctx context.Context, namespace string, t Template) *corev1.PodTemplateSpec {
	template, err := v.Cluster.Default(ctx, namespace, t.Pod, t.Volumes...)
	if err != nil {
		return nil
	}
	return template
}
