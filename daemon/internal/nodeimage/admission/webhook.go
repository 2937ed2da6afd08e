package admission

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/daemon/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/conversion"
)

// Webhook has the webhooks of NodeImage.
type Webhook struct {
	// Clock is the time at which a tag was requested.
	Clock clock.PassiveClock
}

// Mutating returns the endpoint that sets defaults.
func (w Webhook) Mutating() admission.Endpoint {
	return admission.Endpoint{Path: conversion.NodeImages().MutatePath(), Handler: conversion.NodeImages().Defaulting(
		func(_ context.Context, req admission.Request[*v1beta1.NodeImage]) error {
			Default(req.New, w.Clock.Now())
			return nil
		})}
}

// Validating returns the endpoint that validates.
func (w Webhook) Validating() admission.Endpoint {
	return admission.Endpoint{Path: conversion.NodeImages().ValidatePath(), Handler: conversion.NodeImages().Validating(validate)}
}

func validate(_ context.Context, req admission.Request[*v1beta1.NodeImage]) (admission.Findings, error) {
	if req.Operation == admissionv1.Delete || req.New.DeletionTimestamp != nil {
		return admission.Findings{}, nil
	}
	errs := Validate(req.New, req.Old)
	if req.Old != nil && req.Version == v1alpha1.GroupVersion.Version {
		if lost := conversion.LostModes(req.Old, req.New); lost != "" {
			at := field.NewPath("metadata", "annotations").Key(v1beta1.SecretModesAnnotation)
			errs = append(errs, field.Forbidden(at, lost))
		}
	}
	return admission.Findings{Errors: errs}, nil
}
