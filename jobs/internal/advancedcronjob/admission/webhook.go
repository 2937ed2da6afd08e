package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
	"github.com/flotilla-project/flotilla/jobs/internal/conversion"
)

// Rules are those that need answers of the cluster.
type Rules struct {
	// Pods validates pod templates, and Jobs validates templates of Jobs.
	Pods podtemplate.Validator
	Jobs Jobs
}

// NewWebhook answers the API server about AdvancedCronJobs.
func NewWebhook(rules Rules) admission.Webhook[*v1beta1.AdvancedCronJob] {
	return admission.Webhook[*v1beta1.AdvancedCronJob]{
		Kind:    conversion.CronJobs(),
		Default: Default,
		Convert: conversion.Convert,
		Validate: func(ctx context.Context, req admission.Request[*v1beta1.AdvancedCronJob]) (admission.Findings, error) {
			errs := Validate(req.New, req.Old)
			check := rules.template
			if req.Old != nil {
				check = rules.change
			}
			more, err := check(ctx, req)
			return admission.Findings{Errors: append(errs, more...), Warnings: endless(req.New)}, err
		},
	}
}

// endless warns of jobs that do not end: each run adds another job, or no run ever follows.
func endless(cron *v1beta1.AdvancedCronJob) []string {
	t := cron.Spec.Template.BroadcastJobTemplate
	if t == nil || t.Spec.CompletionPolicy.Type != v1beta1.CompletionNever {
		return nil
	}
	return []string{"spec.template.broadcastJobTemplate.spec.completionPolicy.type: a BroadcastJob of type Never runs forever: " +
		"concurrencyPolicy Forbid allows a single run, and Allow adds a job with each run"}
}

// template asks the cluster about a new template.
func (r Rules) template(ctx context.Context, req admission.Request[*v1beta1.AdvancedCronJob]) (field.ErrorList, error) {
	at := field.NewPath("spec", "template")
	switch t := &req.New.Spec.Template; {
	case t.JobTemplate != nil:
		inner := at.Child("jobTemplate")
		pod := podtemplate.Template{Pod: &t.JobTemplate.Spec.Template}
		change, err := r.Pods.ValidateChange(ctx, req.Namespace, pod, nil, inner.Child("spec", "template"))
		if err != nil || len(change.Errors) > 0 {
			return change.Errors, err
		}
		_, errs, err := r.Jobs.Check(ctx, req.Namespace, t.JobTemplate, inner)
		return errs, err
	case t.BroadcastJobTemplate != nil:
		pod := podtemplate.Template{Pod: &t.BroadcastJobTemplate.Spec.Template}
		change, err := r.Pods.ValidateChange(ctx, req.Namespace, pod, nil, at.Child("broadcastJobTemplate", "spec", "template"))
		return change.Errors, err
	}
	return nil, nil
}

// change refuses another template for a stored AdvancedCronJob. Fields that the cluster and OpenKruise have filled in
// are no difference. Lists of images may change.
func (r Rules) change(ctx context.Context, req admission.Request[*v1beta1.AdvancedCronJob]) (field.ErrorList, error) {
	at := field.NewPath("spec", "template")
	before, after := &req.Old.Spec.Template, &req.New.Spec.Template
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return nil, nil
	case plan.KindOf(req.Old) != plan.KindOf(req.New):
		return field.ErrorList{field.Forbidden(at, "the kind of the jobs is "+immutable)}, nil
	case before.JobTemplate != nil && after.JobTemplate != nil:
		return r.jobChange(ctx, req, at.Child("jobTemplate"))
	case before.BroadcastJobTemplate != nil && after.BroadcastJobTemplate != nil:
		return r.broadcastChange(ctx, req, at.Child("broadcastJobTemplate"))
	}
	return nil, nil
}

func (r Rules) jobChange(ctx context.Context, req admission.Request[*v1beta1.AdvancedCronJob], at *field.Path) (field.ErrorList, error) {
	before := withJobDefaults(req.Old.Spec.Template.JobTemplate)
	after := withJobDefaults(req.New.Spec.Template.JobTemplate)
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	was, _, err := r.Jobs.Check(ctx, req.Namespace, before, at)
	if err != nil {
		return nil, err
	}
	is, _, err := r.Jobs.Check(ctx, req.Namespace, after, at)
	if err != nil {
		return nil, err
	}
	if was == nil || is == nil {
		return forbidDifference(before, after, at)
	}
	return forbidDifference(was, is, at)
}

func (r Rules) broadcastChange(ctx context.Context, req admission.Request[*v1beta1.AdvancedCronJob], at *field.Path) (field.ErrorList, error) {
	before := withBroadcastDefaults(req.Old.Spec.Template.BroadcastJobTemplate)
	after := withBroadcastDefaults(req.New.Spec.Template.BroadcastJobTemplate)
	if !equality.Semantic.DeepEqual(before, after) {
		was, errBefore := r.Pods.Cluster.Default(ctx, req.Namespace, &before.Spec.Template)
		is, errAfter := r.Pods.Cluster.Default(ctx, req.Namespace, &after.Spec.Template)
		if errBefore == nil && errAfter == nil {
			before.Spec.Template, after.Spec.Template = *was, *is
		}
	}
	return forbidDifference(before, after, at)
}
