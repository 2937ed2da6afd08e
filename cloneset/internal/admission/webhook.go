package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/conversion"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/admission"
)

// Webhook answers the API server.
type Webhook struct {
	// Reader gathers facts.
	Reader Reader
	// DeletionProtection refuses to delete sets that carry a label which asks for that.
	DeletionProtection bool
}

// kind describes CloneSet in both its versions.
func kind() admission.Kind[*v1beta1.CloneSet] {
	return admission.NewKind(contract.AppsGroup, v1beta1.Kind,
		admission.Hub[v1beta1.CloneSet](v1beta1.GroupVersion.Version),
		admission.Spoke[v1beta1.CloneSet](v1alpha1.GroupVersion.Version, admission.Conversion[*v1beta1.CloneSet, *v1alpha1.CloneSet]{
			ToHub:   conversion.ToHub,
			FromHub: conversion.FromHub,
			Path:    conversion.V1alpha1Path,
		}),
	)
}

// Mutating sets defaults.
func (w Webhook) Mutating() admission.Endpoint {
	return admission.Endpoint{Path: kind().MutatePath(), Handler: mutating(kind())}
}

// Validating applies the rules.
func (w Webhook) Validating() admission.Endpoint {
	return admission.Endpoint{Path: kind().ValidatePath(), Handler: kind().Validating(w.validate)}
}

// Converting converts between the versions and leaves the bytes that both share as they are written.
func (w Webhook) Converting() http.Handler { return admission.Converting(conversion.Convert) }

func mutating(kind admission.Kind[*v1beta1.CloneSet]) http.Handler {
	return kind.Defaulting(func(_ context.Context, req admission.Request[*v1beta1.CloneSet]) error {
		Default(req.New)
		return nil
	})
}

func (w Webhook) validate(ctx context.Context, req admission.Request[*v1beta1.CloneSet]) (admission.Findings, error) {
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
		Warnings: Warnings(req.New, req.Version),
	}, nil
}

func (w Webhook) validateDelete(set *v1beta1.CloneSet) error {
	if !w.DeletionProtection {
		return nil
	}
	resource := schema.GroupResource{Group: contract.AppsGroup, Resource: "clonesets"}
	return admission.RefuseDeletion(resource, set, ptr.Deref(set.Spec.Replicas, defaultReplicas))
}
