package admission

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/workloads/validation"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
)

// Validate returns the errors in a job, except for the rules of pods, which the cluster knows. Old is the stored one,
// nil on create. Errors that old has, too, do not prevent other changes.
func Validate(job, old *v1beta1.BroadcastJob) field.ErrorList {
	if old != nil && equality.Semantic.DeepEqual(job.Spec, old.Spec) {
		return nil
	}
	at := field.NewPath("spec")
	errs := ValidateSpec(&job.Spec, at)
	if old == nil {
		return append(ValidateName(job.Name, field.NewPath("metadata", "name")), errs...)
	}
	return validation.WithoutStored(errs, ValidateSpec(&old.Spec, at))
}

// longestName is the length of a name that is the value of a label of pods.
const longestName = utilvalidation.LabelValueMaxLength

// ValidateName returns the errors in the name of a job, which begins the names of its pods and is the value of a label
// of theirs.
func ValidateName(name string, at *field.Path) field.ErrorList {
	switch {
	case name == "": // the server is about to generate one
		return nil
	case len(name) > longestName:
		return field.ErrorList{field.Invalid(at, name, fmt.Sprintf("must be no more than %d characters", longestName))}
	case !regexp.MustCompile(`^[a-zA-Z0-9-]+$`).MatchString(name):
		return field.ErrorList{field.Invalid(at, name, "must consist of letters, digits and '-'")}
	}
	return nil
}

// ValidateSpec returns the errors in a spec, except for the rules of pods, which the cluster knows
// (podtemplate.Validator).
func ValidateSpec(spec *v1beta1.BroadcastJobSpec, at *field.Path) field.ErrorList {
	errs := validateParallelism(spec.Parallelism, at.Child("parallelism"))
	errs = append(errs, completion.Validate(&spec.CompletionPolicy, at.Child("completionPolicy"))...)
	errs = append(errs, validateFailure(&spec.FailurePolicy, at.Child("failurePolicy"))...)
	errs = append(errs, validatePodFailure(spec, at.Child("podFailurePolicy"))...)
	return append(errs, validateTemplate(&spec.Template, at.Child("template"))...)
}

func validateParallelism(p *intstr.IntOrString, at *field.Path) field.ErrorList {
	const want = "must be an integer greater than or equal to 0 or a percentage from 0% to 100%"
	switch {
	case p == nil, p.Type == intstr.Int && p.IntVal >= 0:
		return nil
	case p.Type == intstr.Int:
		return field.ErrorList{field.Invalid(at, p.IntVal, want)}
	case !percentage().MatchString(p.StrVal):
		return field.ErrorList{field.Invalid(at, p.StrVal, want)}
	}
	return nil
}

func percentage() *regexp.Regexp { return regexp.MustCompile(`^(100|[0-9]{1,2})%$`) }

func validateFailure(f *v1beta1.FailurePolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch f.Type {
	case "", v1beta1.FailFast, v1beta1.FailContinue, v1beta1.FailPause:
	default:
		types := []v1beta1.FailurePolicyType{v1beta1.FailFast, v1beta1.FailContinue, v1beta1.FailPause}
		errs = append(errs, field.NotSupported(at.Child("type"), f.Type, types))
	}
	if f.RestartLimit < 0 {
		errs = append(errs, field.Invalid(at.Child("restartLimit"), f.RestartLimit, "must be greater than or equal to 0"))
	}
	return errs
}

// validateTemplate: a pod that is always restarted never ends, and the labels identify the pods of each job.
func validateTemplate(t *corev1.PodTemplateSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch policy := t.Spec.RestartPolicy; policy {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
	case "":
		policy = corev1.RestartPolicyAlways // as the server reads it
		fallthrough
	default:
		policies := []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}
		errs = append(errs, field.NotSupported(at.Child("spec", "restartPolicy"), policy, policies))
	}
	for _, key := range []string{v1beta1.BroadcastJobNameLabel, v1beta1.BroadcastJobUIDLabel} {
		if _, ok := t.Labels[key]; ok {
			errs = append(errs, field.Forbidden(at.Child("metadata", "labels").Key(key), "the key is set by the controller"))
		}
	}
	return errs
}
