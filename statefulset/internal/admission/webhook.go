package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/statefulset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/conversion"
)

// Webhook answers the API server.
type Webhook struct {
	// Reader gathers facts.
	Reader Reader
}

// kind describes StatefulSet in both its versions.
func kind() admission.Kind[*v1beta1.StatefulSet] {
	return admission.NewKind(contract.AppsGroup, v1beta1.Kind,
		admission.Hub[v1beta1.StatefulSet](v1beta1.GroupVersion.Version),
		admission.Spoke[v1beta1.StatefulSet](v1alpha1.GroupVersion.Version, admission.Conversion[*v1beta1.StatefulSet, *v1alpha1.StatefulSet]{
			ToHub:   conversion.ToHub,
			FromHub: conversion.FromHub,
			Path:    conversion.V1alpha1Path,
		}),
	)
}

// Mutating sets defaults.
func (w Webhook) Mutating() admission.Endpoint {
	return admission.Endpoint{Path: kind().MutatePath(), Handler: kind().Defaulting(w.setDefaults)}
}

// Validating applies the rules.
func (w Webhook) Validating() admission.Endpoint {
	return admission.Endpoint{Path: kind().ValidatePath(), Handler: kind().Validating(w.validate)}
}

// Converting converts between the versions and leaves the bytes that both share as they are written.
func (w Webhook) Converting() http.Handler { return admission.Converting(conversion.Convert) }

func (w Webhook) setDefaults(_ context.Context, req admission.Request[*v1beta1.StatefulSet]) error {
	// A v1alpha1 object whose annotation cannot be read is left for validation to refuse as it was sent.
	if conversion.Unreadable(req.New) == "" {
		Default(req.New, w.Reader.Gates)
	}
	return nil
}

func (w Webhook) validate(ctx context.Context, req admission.Request[*v1beta1.StatefulSet]) (admission.Findings, error) {
	if req.Operation == admissionv1.Delete {
		return admission.Findings{}, w.validateDelete(req.Old)
	}
	if req.New.DeletionTimestamp != nil {
		return admission.Findings{}, nil // only finalizers change, nothing is made from the spec any more
	}
	facts, err := w.Reader.Read(ctx, req.New, req.Old, req.Version)
	if err != nil {
		return admission.Findings{}, err
	}
	return admission.Findings{
		Errors:   Validate(req.New, req.Old, facts),
		Warnings: Warnings(req.New, req.Old, facts.Gates),
	}, nil
}

func (w Webhook) validateDelete(set *v1beta1.StatefulSet) error {
	if !w.Reader.Gates.DeletionProtection {
		return nil
	}
	resource := schema.GroupResource{Group: contract.AppsGroup, Resource: "statefulsets"}
	return admission.RefuseDeletion(resource, set, ptr.Deref(set.Spec.Replicas, 0))
}
