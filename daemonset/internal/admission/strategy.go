package admission

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/workloads/rollout"
	"github.com/flotilla-project/flotilla/core/workloads/validation"
	"github.com/flotilla-project/flotilla/daemonset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

func validateUpdateStrategy(strategy *v1beta1.DaemonSetUpdateStrategy, version string, path *field.Path) field.ErrorList {
	switch strategy.Type {
	case v1beta1.OnDeleteStrategyType:
		return nil
	case "", v1beta1.RollingUpdateStrategyType:
		if strategy.RollingUpdate == nil {
			return field.ErrorList{field.Required(path.Child("rollingUpdate"), "")}
		}
		return validateRollingUpdate(strategy.RollingUpdate, version, path.Child("rollingUpdate"))
	}
	known := []v1beta1.DaemonSetUpdateStrategyType{v1beta1.RollingUpdateStrategyType, v1beta1.OnDeleteStrategyType}
	return field.ErrorList{field.NotSupported(path, strategy.Type, known)}
}

func validateRollingUpdate(rolling *v1beta1.RollingUpdateDaemonSet, version string, path *field.Path) field.ErrorList {
	errs := validateType(rolling.RollingUpdateType, version, path.Child("rollingUpdateType"))
	errs = append(errs, validateLimits(rolling, path)...)
	errs = append(errs, validateShare(rolling.Partition, path.Child("partition"))...)
	if rolling.Selector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(rolling.Selector, metavalidation.LabelSelectorValidationOptions{}, path.Child("selector"))...)
		if _, err := metav1.LabelSelectorAsSelector(rolling.Selector); err != nil && len(errs) == 0 {
			errs = append(errs, field.Invalid(path.Child("selector"), rolling.Selector, err.Error()))
		}
	}
	errs = append(errs, oneOf(rolling.UnreadyNodePolicy, path.Child("unreadyNodePolicy"),
		v1beta1.CountUnreadyNodes, v1beta1.SkipUnreadyNodes, v1beta1.SkipNodesUnreadyBeforeUpdate)...)
	return append(errs, oneOf(rolling.UnselectedNodePolicy, path.Child("unselectedNodePolicy"),
		v1beta1.IgnoreUnselectedNodes, v1beta1.RevertUnselectedNodes)...)
}

// validateType: conversion has replaced Surging where v1alpha1 may have it.
func validateType(value v1beta1.RollingUpdateType, version string, path *field.Path) field.ErrorList {
	known := []v1beta1.RollingUpdateType{v1beta1.StandardRollingUpdateType, v1beta1.InPlaceRollingUpdateType}
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	if version == v1alpha1.GroupVersion.Version {
		known = append(known, v1beta1.SurgingRollingUpdateType)
	}
	return field.ErrorList{field.NotSupported(path, value, known)}
}

// validateLimits wants that an update can continue: one of the limits lets it, and not both do.
func validateLimits(rolling *v1beta1.RollingUpdateDaemonSet, path *field.Path) field.ErrorList {
	surgePath := path.Child("maxSurge")
	unavailablePath := path.Child("maxUnavailable")
	errs := validateShare(rolling.MaxUnavailable, unavailablePath)
	errs = append(errs, validateShare(rolling.MaxSurge, surgePath)...)
	if len(errs) > 0 {
		return errs
	}
	unavailable := !isZero(rolling.MaxUnavailable)
	surge := !isZero(rolling.MaxSurge)
	if rolling.MaxUnavailable == nil && rolling.MaxSurge == nil {
		unavailable = true // the default
	}
	switch {
	case unavailable && surge:
		errs = append(errs, field.Invalid(surgePath, rolling.MaxSurge, "may not be set when maxUnavailable is non-zero"))
	case !unavailable && !surge:
		errs = append(errs, field.Required(unavailablePath, "cannot be 0 when maxSurge is 0"))
	}
	if surge && rolling.RollingUpdateType == v1beta1.InPlaceRollingUpdateType {
		errs = append(errs, field.Required(surgePath, "must be 0 for InPlaceIfPossible type"))
	}
	return errs
}

// validateShare wants a number of nodes or a percentage of them, in the words of the built-in kind.
func validateShare(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	if value.Type == intstr.Int {
		return validation.NonNegative(&value.IntVal, path)
	}
	if messages := utilvalidation.IsValidPercent(value.StrVal); len(messages) > 0 {
		return field.ErrorList{field.Invalid(path, value, messages[0])}
	}
	if percentOf(value) > 100 {
		return field.ErrorList{field.Invalid(path, value, "must not be greater than 100%")}
	}
	return nil
}

// validateBurst: a burst of none would block the set permanently.
func validateBurst(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	errs := validateShare(value, path)
	if len(errs) == 0 && value != nil && isZero(value) {
		errs = append(errs, field.Invalid(path, value, "must be greater than 0"))
	}
	return errs
}

// isZero reports whether a valid value lets no node go.
func isZero(value *intstr.IntOrString) bool {
	return value == nil || percentOf(value) == 0
}

// percentOf returns a percentage as a number, and any other number as it is.
func percentOf(value *intstr.IntOrString) int32 {
	amount, err := rollout.Parse(*value)
	if err != nil {
		return 0
	}
	return amount.ScaledTo(100, rollout.RoundUp)
}

func oneOf[T ~string](value T, path *field.Path, known ...T) field.ErrorList {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, known)}
}
