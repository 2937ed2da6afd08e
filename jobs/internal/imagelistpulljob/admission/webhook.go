package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/workloads/validation"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
	"github.com/flotilla-project/flotilla/jobs/internal/conversion"
	pulladmission "github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/admission"
	pullplan "github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// NewWebhook answers the API server about ImageListPullJobs.
func NewWebhook() admission.Webhook[*v1beta1.ImageListPullJob] {
	return admission.Webhook[*v1beta1.ImageListPullJob]{
		Kind:    conversion.ImageListPullJobs(),
		Convert: conversion.Convert,
		Default: func(job *v1beta1.ImageListPullJob) { pullplan.DefaultTemplate(&job.Spec.ImagePullJobTemplate) },
		Validate: func(_ context.Context, req admission.Request[*v1beta1.ImageListPullJob]) (admission.Findings, error) {
			return admission.Findings{Errors: Validate(req.New, req.Old), Warnings: tooLate(req.New, req.Old)}, nil
		},
	}
}

// tooLate warns of an edit of a job that has completed: of its spec only the time to live means something.
func tooLate(job, old *v1beta1.ImageListPullJob) []string {
	if old == nil {
		return nil
	}
	before := defaulted(&old.Spec)
	before.CompletionPolicy.TTLSecondsAfterFinished = job.Spec.CompletionPolicy.TTLSecondsAfterFinished
	return completion.NoEffect(old.Status.CompletionTime, before, defaulted(&job.Spec))
}

// Validate returns the errors in a job. Old is the stored one, nil on create. Errors that old has, too, do not prevent
// other changes. A default that old lacks is no change.
func Validate(job, old *v1beta1.ImageListPullJob) field.ErrorList {
	if old != nil && equality.Semantic.DeepEqual(defaulted(&job.Spec), defaulted(&old.Spec)) {
		return nil
	}
	at := field.NewPath("spec")
	errs := ValidateSpec(&job.Spec, at)
	if old == nil {
		return errs
	}
	return validation.WithoutStored(errs, ValidateSpec(defaulted(&old.Spec), at))
}

func defaulted(spec *v1beta1.ImageListPullJobSpec) *v1beta1.ImageListPullJobSpec {
	out := spec.DeepCopy()
	pullplan.DefaultTemplate(&out.ImagePullJobTemplate)
	return out
}

// ValidateSpec returns the errors in a spec.
func ValidateSpec(spec *v1beta1.ImageListPullJobSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	images := at.Child("images")
	switch n := len(spec.Images); {
	case n == 0:
		errs = append(errs, field.Required(images, "name an image"))
	case n > v1beta1.MaxImages:
		errs = append(errs, &field.Error{
			Type:     field.ErrorTypeTooMany,
			Field:    images.String(),
			BadValue: n,
			Detail:   fmt.Sprintf("at most %d images", v1beta1.MaxImages),
		})
	}
	seen := make(map[string]bool, len(spec.Images))
	for i, image := range spec.Images {
		if seen[image] {
			errs = append(errs, field.Duplicate(images.Index(i), image))
			continue
		}
		seen[image] = true
		errs = append(errs, pulladmission.ValidateImage(image, images.Index(i))...)
	}
	return append(errs, pulladmission.ValidateTemplate(&spec.ImagePullJobTemplate, at)...)
}
