package admission

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"
	"github.com/flotilla-project/flotilla/core/workloads/validation"
	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
)

// longestMinReady is the most that rollingUpdate.minReadySeconds may be.
const longestMinReady = 300

// validateStrategies validates how pods are managed, added and updated.
func validateStrategies(spec *v1beta1.StatefulSetSpec) field.ErrorList {
	var errs field.ErrorList
	path := specPath().Child("podManagementPolicy")
	switch spec.PodManagementPolicy {
	case appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement:
	case "":
		errs = append(errs, field.Required(path, ""))
	default:
		errs = append(errs, field.Invalid(path, spec.PodManagementPolicy, "must be 'OrderedReady' or 'Parallel'"))
	}
	errs = append(errs, validateScaleStrategy(spec)...)
	errs = append(errs, validateUpdateStrategy(spec)...)
	return append(errs, validateMinReady(spec)...)
}

// validateScaleStrategy: pods of an ordered set are created one after the other, which the value 1 also means.
func validateScaleStrategy(spec *v1beta1.StatefulSetSpec) field.ErrorList {
	if spec.ScaleStrategy == nil || spec.ScaleStrategy.MaxUnavailable == nil {
		return nil
	}
	path := specPath().Child("scaleStrategy", "maxUnavailable")
	value := spec.ScaleStrategy.MaxUnavailable
	errs := validateUnavailable(value, path)
	if !isParallel(spec) && *value != intstr.FromInt32(1) {
		errs = append(errs, field.Invalid(path, value, "can only work with Parallel PodManagementPolicyType"))
	}
	return errs
}

// validateUnavailable wants a number of pods or a percentage that lets at least one pod go. More than
// all of them means all of them.
func validateUnavailable(value *intstr.IntOrString, path *field.Path) field.ErrorList {
	switch {
	case value == nil:
		return nil
	case value.Type == intstr.String:
		if messages := utilvalidation.IsValidPercent(value.StrVal); len(messages) > 0 {
			return field.ErrorList{field.Invalid(path, value, messages[0])}
		}
		if strings.Trim(value.StrVal, "0") == "%" {
			return field.ErrorList{field.Invalid(path, value, "should not be less than 1")}
		}
		return nil
	case value.IntVal == 0:
		return field.ErrorList{field.Invalid(path, value, "should not be less than 1")}
	}
	return validation.NonNegative(&value.IntVal, path)
}

func validateUpdateStrategy(spec *v1beta1.StatefulSetSpec) field.ErrorList {
	path := specPath().Child("updateStrategy")
	strategy := &spec.UpdateStrategy
	unknown := field.ErrorList{field.Invalid(path, strategy.Type, "must be 'RollingUpdate' or 'OnDelete'")}
	switch strategy.Type {
	case "", appsv1.RollingUpdateStatefulSetStrategyType:
		if strategy.RollingUpdate == nil {
			return nil
		}
		return validateRollingUpdate(spec, path.Child("rollingUpdate"))
	case appsv1.OnDeleteStatefulSetStrategyType:
		if strategy.RollingUpdate == nil {
			return nil
		}
		message := "only allowed for updateStrategy 'RollingUpdate'"
		return field.ErrorList{field.Invalid(path.Child("rollingUpdate"), strategy.RollingUpdate, message)}
	case appsv1.RecreateStatefulSetStrategyType: // from the manifest of a built-in set
		message := "Recreate is for built-in StatefulSets only: scale to 0, change the template, and scale up"
		return append(unknown, field.Invalid(path, strategy.Type, message))
	}
	return unknown
}

func validateRollingUpdate(spec *v1beta1.StatefulSetSpec, path *field.Path) field.ErrorList {
	rolling := spec.UpdateStrategy.RollingUpdate
	errs := validation.NonNegative(rolling.Partition, path.Child("partition"))
	errs = append(errs, validateUnavailable(rolling.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, validatePolicy(rolling.PodUpdatePolicy, &spec.Template.Spec, path.Child("podUpdatePolicy"))...)
	errs = append(errs, validation.InPlaceStrategy(rolling.InPlaceUpdateStrategy, path.Child("inPlaceUpdateStrategy"))...)
	if rolling.UnorderedUpdate == nil {
		return errs
	}
	path = path.Child("unorderedUpdate")
	if !isParallel(spec) {
		errs = append(errs, field.Required(path, "unorderedUpdate can only work with Parallel PodManagementPolicyType"))
	}
	return append(errs, ordering.ValidatePriority(rolling.UnorderedUpdate.PriorityStrategy, path.Child("priorityStrategy"))...)
}

// validatePolicy: an update in place takes the pod out of service by its readiness gate.
func validatePolicy(policy v1beta1.PodUpdatePolicy, pod *corev1.PodSpec, path *field.Path) field.ErrorList {
	switch policy {
	case "", v1beta1.ReCreate:
		return nil
	case v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly:
	default:
		return field.ErrorList{field.Invalid(path, policy, "must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'")}
	}
	if slices.Contains(pod.ReadinessGates, corev1.PodReadinessGate{ConditionType: contract.InPlaceUpdateReady}) {
		return nil
	}
	return field.ErrorList{field.Invalid(specPath().Child("template", "spec", "readinessGates"), pod.ReadinessGates,
		"must contain "+contract.InPlaceUpdateReady+" when podUpdatePolicy is "+string(policy))}
}

// validateMinReady: the field stands in two places, in rollingUpdate and in the place of the built-in kind, which do
// not contradict each other.
func validateMinReady(spec *v1beta1.StatefulSetSpec) field.ErrorList {
	path := specPath().Child("minReadySeconds")
	errs := validation.NonNegative(&spec.MinReadySeconds, path)
	rolling := spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MinReadySeconds == nil {
		return errs
	}
	own := *rolling.MinReadySeconds
	inner := specPath().Child("updateStrategy", "rollingUpdate", "minReadySeconds")
	errs = append(errs, validation.NonNegative(&own, inner)...)
	if own > longestMinReady {
		errs = append(errs, field.Invalid(inner, own, "must be no more than 300 seconds"))
	}
	if own != 0 && spec.MinReadySeconds != 0 && own != spec.MinReadySeconds {
		errs = append(errs, field.Invalid(path, spec.MinReadySeconds, "must be the same as "+inner.String()+" when both are set"))
	}
	return errs
}
