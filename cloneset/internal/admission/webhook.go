package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
	"github.com/flotilla-project/flotilla/cloneset/internal/conversion"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/admission"
)

// NewWebhook answers the API server about CloneSets. The reader gathers facts; with deletion protection sets that carry
// a label which asks for that are not deleted.
func NewWebhook(reader Reader, deletionProtection bool) admission.Webhook[*v1beta1.CloneSet] {
	w := admission.Webhook[*v1beta1.CloneSet]{
		Kind: admission.NewKind(contract.AppsGroup, v1beta1.Kind,
			admission.Hub[v1beta1.CloneSet](v1beta1.GroupVersion.Version),
			admission.Spoke[v1beta1.CloneSet](v1alpha1.GroupVersion.Version, admission.Conversion[*v1beta1.CloneSet, *v1alpha1.CloneSet]{
				ToHub:   conversion.ToHub,
				FromHub: conversion.FromHub,
				Path:    conversion.V1alpha1Path,
			}),
		),
		Default:  Default,
		Validate: reader.validate,
		Convert:  conversion.Convert,
	}
	if deletionProtection {
		w.Delete = refuseDeletion
	}
	return w
}

func (r Reader) validate(ctx context.Context, req admission.Request[*v1beta1.CloneSet]) (admission.Findings, error) {
	facts, err := r.Read(ctx, req.New, req.Old, req.Version)
	if err != nil {
		return admission.Findings{}, err
	}
	found := admission.Findings{Errors: Validate(req.New, req.Old, facts), Warnings: Warnings(req.New, req.Old, req.Version)}
	if r.Forecast && req.Old != nil && len(found.Errors) == 0 {
		found.Warnings = append(found.Warnings, plan.Forecast(req.Old, req.New, r.InPlace).Warnings()...)
	}
	return found, nil
}

func refuseDeletion(set *v1beta1.CloneSet) error {
	resource := schema.GroupResource{Group: contract.AppsGroup, Resource: "clonesets"}
	return admission.RefuseDeletion(resource, set, ptr.Deref(set.Spec.Replicas, defaultReplicas))
}
