package validation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/inplace/diff"
	"github.com/flotilla-project/flotilla/core/pods/podspec"
)

// Selector validates the selector and the template's labels of a workload with its spec at the path. It wants a
// selector with a term, because an empty one would select every pod, and that it matches the labels. The kind is the
// workload's, for the message.
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

// LongRunning holds the rules that workloads with pods that run until they are deleted add to the rules of the cluster.
// The path is the template's, the kind the workload's, for the message.
func LongRunning(template *corev1.PodTemplateSpec, at *field.Path, kind string) field.ErrorList {
	errs := restartInPlace(template, at.Child("metadata", "annotations").Key(contract.RestartInPlaceAnnotation))
	errs = append(errs, controlLabels(template, at.Child("metadata", "labels"))...)
	pod, at := &template.Spec, at.Child("spec")
	if pod.RestartPolicy != "" && pod.RestartPolicy != corev1.RestartPolicyAlways {
		supported := []corev1.RestartPolicy{corev1.RestartPolicyAlways}
		errs = append(errs, field.NotSupported(at.Child("restartPolicy"), pod.RestartPolicy, supported))
	}
	if pod.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(at.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

// controlLabels wants that a template has no label that belongs to single pods: all of its pods would be asked to go,
// or would have labels of a state that they are not in.
func controlLabels(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range contract.ControlLabels() {
		if _, ok := template.Labels[key]; ok {
			errs = append(errs, field.Forbidden(at.Key(key), "this label belongs to single pods: remove it from the template"))
		}
	}
	return errs
}

// restartInPlace wants that an annotation that restarts containers names containers or native sidecars of the template.
func restartInPlace(template *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	value := template.Annotations[contract.RestartInPlaceAnnotation]
	names, _ := diff.ParseRestart(value)
	var errs field.ErrorList
	for _, name := range names {
		if !slices.ContainsFunc(podspec.LongRunning(&template.Spec), func(c *corev1.Container) bool { return c.Name == name }) {
			errs = append(errs, field.Invalid(at, value, "there is no container "+name))
		}
	}
	return errs
}
