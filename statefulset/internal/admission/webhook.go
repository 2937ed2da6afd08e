package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/conversion"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// NewWebhook answers the API server about StatefulSets. The reader gathers facts.
func NewWebhook(reader Reader) admission.Webhook[*v1beta1.StatefulSet] {
	w := admission.Webhook[*v1beta1.StatefulSet]{
		Kind: admission.NewKind(contract.AppsGroup, v1beta1.Kind,
			admission.Hub[v1beta1.StatefulSet](v1beta1.GroupVersion.Version),
			admission.Spoke[v1beta1.StatefulSet](v1alpha1.GroupVersion.Version, admission.Conversion[*v1beta1.StatefulSet, *v1alpha1.StatefulSet]{
				ToHub:   conversion.ToHub,
				FromHub: conversion.FromHub,
				Path:    conversion.V1alpha1Path,
			}),
		),
		Default: func(set *v1beta1.StatefulSet) {
			// A v1alpha1 object with an unreadable annotation is left for validation to refuse as it was sent.
			if conversion.Unreadable(set) == "" {
				Default(set, reader.FeatureGates)
			}
		},
		Validate: reader.validate,
		Convert:  conversion.Convert,
	}
	if reader.FeatureGates.DeletionProtection {
		w.Delete = refuseDeletion
	}
	return w
}

func (r Reader) validate(ctx context.Context, req admission.Request[*v1beta1.StatefulSet]) (admission.Findings, error) {
	facts, err := r.Read(ctx, req.New, req.Old, req.Version)
	if err != nil {
		return admission.Findings{}, err
	}
	found := admission.Findings{Errors: Validate(req.New, req.Old, facts), Warnings: Warnings(req.New, req.Old, facts.FeatureGates)}
	if r.FeatureGates.Forecast && req.Old != nil && len(found.Errors) == 0 {
		found.Warnings = append(found.Warnings, plan.Forecast(req.Old, req.New, r.InPlace).Warnings()...)
	}
	return found, nil
}

func refuseDeletion(set *v1beta1.StatefulSet) error {
	resource := schema.GroupResource{Group: contract.AppsGroup, Resource: "statefulsets"}
	return admission.RefuseDeletion(resource, set, ptr.Deref(set.Spec.Replicas, 0))
}
