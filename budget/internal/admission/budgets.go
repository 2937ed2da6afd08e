package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/admission"
	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

// Budgets answers the API server about PodUnavailableBudgets.
type Budgets struct {
	// Cover reads budgets, their pods and their targets for warnings about probable mistakes.
	Cover cover.Reader
	// Live is asked whether OpenKruise also answers for budgets.
	Live  client.Reader
	Gates features.Set
}

// Validating returns the endpoint that validates budgets.
func (w Budgets) Validating() admission.Endpoint {
	return admission.Webhook[*v1beta1.PodUnavailableBudget]{Kind: conversion.Budgets(), Validate: w.validate}.Validating()
}

func (w Budgets) validate(ctx context.Context, req admission.Request[*v1beta1.PodUnavailableBudget]) (admission.Findings, error) {
	on := w.Gates.Enabled
	if !on(featuregates.PodUnavailableBudgetDeleteGate) && !on(featuregates.PodUnavailableBudgetUpdateGate) {
		return admission.Findings{}, apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("podunavailablebudgets").GroupResource(), req.Name,
			fmt.Errorf("feature-gates %s and %s are not enabled", featuregates.PodUnavailableBudgetDeleteGate, featuregates.PodUnavailableBudgetUpdateGate))
	}
	found := admission.Findings{Errors: Validate(req.New, req.Old), Warnings: Warn(req.New)}
	found.Errors = append(found.Errors, Lost(req.New, req.Old, req.Version)...)
	if t := req.New.Spec.TargetReference; t != nil && req.Old == nil && w.Cover.Targets.IsClusterScoped(cover.KindOf(t)) {
		found.Errors = append(found.Errors, field.Invalid(field.NewPath("spec", "targetRef", "kind"), t.Kind, "must be a namespaced kind"))
	}
	if len(found.Errors) > 0 {
		return found, nil
	}
	others, err := fastclient.All[v1beta1.PodUnavailableBudget](ctx, w.Cover.Cache, req.Namespace)
	if err != nil {
		return found, fmt.Errorf("list the budgets of namespace %s: %w", req.Namespace, err)
	}
	if len(found.Warnings) == 0 && (req.Old == nil || !equality.Semantic.DeepEqual(req.New.Spec, req.Old.Spec)) {
		found.Warnings = w.warnOfTarget(ctx, req.New)
	}
	if req.Old == nil {
		found.Warnings = append(found.Warnings, w.warnOfNamespace(ctx, req.Namespace)...)
		found.Warnings = append(found.Warnings, w.warnOfOpenKruise(ctx)...)
	}
	errs, warnings := Compare(req.New, req.Old, others)
	if req.Old == nil && len(errs)+len(warnings) == 0 && len(others) > 0 {
		warnings = w.warnOfOverlap(ctx, req)
	}
	found.Errors = append(found.Errors, errs...)
	found.Warnings = append(found.Warnings, warnings...)
	return found, nil
}
