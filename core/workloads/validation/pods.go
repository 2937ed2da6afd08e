package validation

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Selector validates the selector and the template's labels of a workload whose spec has the path. It wants a selector
// with a term, because an empty one would select every pod, and that it matches the labels. The kind is the workload's,
// for the message.
func Selector(s *metav1.LabelSelector, template map[string]string, spec *field.Path, kind string) field.ErrorList {
	at := spec.Child("selector")
	if s == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	errs := metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(at, s, "empty selector is invalid for "+kind))
	}
	if len(errs) > 0 {
		return errs
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return field.ErrorList{field.Invalid(at, s, err.Error())}
	}
	if !selector.Matches(labels.Set(template)) {
		at := spec.Child("template", "metadata", "labels")
		return field.ErrorList{field.Invalid(at, template, "`selector` does not match template `labels`")}
	}
	return nil
}

// LongRunning holds what workloads add to the rules of the cluster whose pods run until they are deleted.
// The path is that of the pod's spec, the kind the workload's, for the message.
func LongRunning(pod *corev1.PodSpec, at *field.Path, kind string) field.ErrorList {
	var errs field.ErrorList
	if pod.RestartPolicy != "" && pod.RestartPolicy != corev1.RestartPolicyAlways {
		supported := []corev1.RestartPolicy{corev1.RestartPolicyAlways}
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), pod.RestartPolicy, supported))
	}
	if pod.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}
