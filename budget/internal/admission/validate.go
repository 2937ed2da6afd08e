package admission

import (
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/budget/api/v1alpha1"
	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/conversion"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

// ignoresNone is the error for an empty selector of pods to ignore.
const ignoresNone = "must not be empty: an empty ignoredPodSelector selects no pod"

// Validate returns the errors of a budget. Old is the stored one, nil on create. A spec that is stored already does not
// prevent other changes.
func Validate(b, old *v1beta1.PodUnavailableBudget) field.ErrorList {
	if old != nil && equality.Semantic.DeepEqual(b.Spec, old.Spec) && equality.Semantic.DeepEqual(b.Annotations, old.Annotations) {
		return nil
	}
	at := field.NewPath("spec")
	errs := validatePods(&b.Spec, at)
	errs = append(errs, validateLimit(&b.Spec, at)...)
	errs = append(errs, validateOperations(b, at)...)
	if n := b.Spec.ProtectTotalReplicas; n != nil && *n < 1 {
		errs = append(errs, field.Invalid(at.Child("protectTotalReplicas"), *n, "must be at least 1"))
	}
	if s := b.Spec.IgnoredPodSelector; s != nil {
		errs = append(errs, validateSelector(s, at.Child("ignoredPodSelector"), ignoresNone)...)
	}
	if old != nil {
		errs = append(errs, validateChange(&b.Spec, &old.Spec, at)...)
	}
	return errs
}

func validatePods(spec *v1beta1.PodUnavailableBudgetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case spec.Selector == nil && spec.TargetReference == nil:
		return append(errs, field.Required(at, "one of selector and targetRef is required"))
	case spec.Selector != nil && spec.TargetReference != nil:
		errs = append(errs, field.Forbidden(at, "selector and targetRef are mutually exclusive"))
	}
	if spec.Selector != nil {
		errs = append(errs, validateSelector(spec.Selector, at.Child("selector"), "must not be empty: an empty selector selects no pod")...)
	}
	if t := spec.TargetReference; t != nil {
		target := at.Child("targetRef")
		for _, part := range []struct{ name, value string }{{"apiVersion", t.APIVersion}, {"kind", t.Kind}, {"name", t.Name}} {
			if part.value == "" {
				errs = append(errs, field.Required(target.Child(part.name), "apiVersion, kind and name are required"))
			}
		}
		if cover.KindOf(t) == (schema.GroupKind{Kind: "Pod"}) {
			errs = append(errs, field.Invalid(target.Child("kind"), t.Kind, "must be a workload: use selector to protect single pods"))
		}
		if _, err := schema.ParseGroupVersion(t.APIVersion); err != nil {
			errs = append(errs, field.Invalid(target.Child("apiVersion"), t.APIVersion, err.Error()))
		}
	}
	return errs
}

func validateSelector(s *metav1.LabelSelector, at *field.Path, empty string) field.ErrorList {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return field.ErrorList{field.Invalid(at, s, empty)}
	}
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at)
}

func validateLimit(spec *v1beta1.PodUnavailableBudgetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case spec.MaxUnavailable == nil && spec.MinAvailable == nil:
		return append(errs, field.Required(at, "one of maxUnavailable and minAvailable is required"))
	case spec.MaxUnavailable != nil && spec.MinAvailable != nil:
		errs = append(errs, field.Forbidden(at, "maxUnavailable and minAvailable are mutually exclusive"))
	}
	errs = append(errs, validateAmount(spec.MaxUnavailable, at.Child("maxUnavailable"))...)
	return append(errs, validateAmount(spec.MinAvailable, at.Child("minAvailable"))...)
}

var percentage = regexp.MustCompile(`^[0-9]+%$`)

func validateAmount(value *intstr.IntOrString, at *field.Path) field.ErrorList {
	switch {
	case value == nil:
	case value.Type == intstr.Int && value.IntVal < 0:
		return field.ErrorList{field.Invalid(at, value.IntVal, "must be greater than or equal to 0")}
	case value.Type == intstr.Int:
	case !percentage.MatchString(value.StrVal):
		return field.ErrorList{field.Invalid(at, value.StrVal, "must be a whole number or a percentage such as 30%")}
	default:
		if n, err := strconv.Atoi(value.StrVal[:len(value.StrVal)-1]); err != nil || n > 100 {
			return field.ErrorList{field.Invalid(at, value.StrVal, "must not be greater than 100%")}
		}
	}
	return nil
}

// validateOperations also checks the annotations that stand for fields: those that could not be converted are there.
func validateOperations(b *v1beta1.PodUnavailableBudget, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	known := []v1beta1.PubOperation{v1beta1.DeleteOperation, v1beta1.UpdateOperation, v1beta1.EvictOperation, v1beta1.ResizeOperation}
	for i, op := range b.Spec.ProtectOperations {
		if all, err := conversion.Operations(string(op)); err != nil || len(all) != 1 {
			errs = append(errs, field.NotSupported(at.Child("protectOperations").Index(i), op, known))
		}
	}
	annotations := field.NewPath("metadata", "annotations")
	if text := b.Annotations[v1beta1.ProtectOperationsAnnotation]; len(b.Spec.ProtectOperations) == 0 {
		if _, err := conversion.Operations(text); err != nil {
			errs = append(errs, field.Invalid(annotations.Key(v1beta1.ProtectOperationsAnnotation), text, err.Error()))
		}
	}
	if text, ok := b.Annotations[v1beta1.ProtectTotalReplicasAnnotation]; ok && b.Spec.ProtectTotalReplicas == nil {
		if _, err := conversion.Replicas(text); err != nil {
			errs = append(errs, field.Invalid(annotations.Key(v1beta1.ProtectTotalReplicasAnnotation), text, err.Error()))
		}
	}
	if text, ok := b.Annotations[v1beta1.IgnoredPodSelectorAnnotation]; ok && b.Spec.IgnoredPodSelector == nil {
		key := annotations.Key(v1beta1.IgnoredPodSelectorAnnotation)
		if s, err := conversion.IgnoredPods(text); err != nil {
			errs = append(errs, field.Invalid(key, text, err.Error()))
		} else {
			errs = append(errs, validateSelector(s, key, ignoresNone)...)
		}
	}
	return errs
}

// Lost returns errors for the values that an update in that version would remove although its client does not know them.
func Lost(b, old *v1beta1.PodUnavailableBudget, version string) field.ErrorList {
	if old == nil || version != v1alpha1.GroupVersion.Version {
		return nil
	}
	if lost := conversion.Lost(old, b); lost != "" {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "ignoredPodSelector"), lost)}
	}
	return nil
}

func validateChange(spec, old *v1beta1.PodUnavailableBudgetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !equality.Semantic.DeepEqual(spec.Selector, old.Selector) {
		errs = append(errs, field.Forbidden(at.Child("selector"), "is immutable: create another budget"))
	}
	if !equality.Semantic.DeepEqual(spec.TargetReference, old.TargetReference) {
		errs = append(errs, field.Forbidden(at.Child("targetRef"), "is immutable: create another budget"))
	}
	return errs
}
