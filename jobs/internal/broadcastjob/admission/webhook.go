package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
	"github.com/flotilla-project/flotilla/jobs/internal/conversion"
)

// tooLate warns of an edit of a job that has ended: of its spec only the time to live means something.
func tooLate(job, old *v1beta1.BroadcastJob) []string {
	if old == nil {
		return nil
	}
	before := old.Spec.DeepCopy()
	before.CompletionPolicy.TTLSecondsAfterFinished = job.Spec.CompletionPolicy.TTLSecondsAfterFinished
	return completion.NoEffect(old.Status.CompletionTime, before, &job.Spec)
}

// NewWebhook answers the API server about BroadcastJobs. The validator asks the cluster about pod templates.
func NewWebhook(templates podtemplate.Validator) admission.Webhook[*v1beta1.BroadcastJob] {
	return admission.Webhook[*v1beta1.BroadcastJob]{
		Kind:    conversion.BroadcastJobs(),
		Convert: conversion.Convert,
		Default: Default,
		Validate: func(ctx context.Context, req admission.Request[*v1beta1.BroadcastJob]) (admission.Findings, error) {
			var before *podtemplate.Template
			if req.Old != nil {
				before = &podtemplate.Template{Pod: &req.Old.Spec.Template}
			}
			now := podtemplate.Template{Pod: &req.New.Spec.Template}
			change, err := templates.ValidateChange(ctx, req.Namespace, now, before, field.NewPath("spec", "template"))
			if err != nil {
				return admission.Findings{}, err
			}
			return admission.Findings{Errors: append(Validate(req.New, req.Old), change.Errors...), Warnings: tooLate(req.New, req.Old)}, nil
		},
	}
}
