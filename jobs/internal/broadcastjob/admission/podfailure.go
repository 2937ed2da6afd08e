package admission

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// Bounds of a policy: the same as for a Job.
const (
	maxRules, maxPatterns, maxExitCodes = 20, 20, 255
)

// validatePodFailure: the rules of a Job but for FailIndex, as no pod has an index.
func validatePodFailure(spec *v1beta1.BroadcastJobSpec, at *field.Path) field.ErrorList {
	policy := spec.PodFailurePolicy
	if policy == nil {
		return nil
	}
	var errs field.ErrorList
	if spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		errs = append(errs, field.Forbidden(at, "can only be set when spec.template.spec.restartPolicy is Never"))
	}
	at = at.Child("rules")
	if len(policy.Rules) > maxRules {
		errs = append(errs, field.TooMany(at, len(policy.Rules), maxRules))
	}
	for i := range policy.Rules {
		errs = append(errs, validateRule(&policy.Rules[i], &spec.Template.Spec, at.Index(i))...)
	}
	return errs
}

func validateRule(rule *batchv1.PodFailurePolicyRule, template *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch actions := []batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore,
	}; {
	case rule.Action == "":
		errs = append(errs, field.Required(at.Child("action"), "must be one of Count, FailJob, Ignore"))
	case !slices.Contains(actions, rule.Action):
		errs = append(errs, field.NotSupported(at.Child("action"), rule.Action, actions))
	}
	if (rule.OnExitCodes == nil) == (len(rule.OnPodConditions) == 0) {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, "specify one of onExitCodes and onPodConditions"))
	}
	if rule.OnExitCodes != nil {
		errs = append(errs, validateExitCodes(rule.OnExitCodes, template, at.Child("onExitCodes"))...)
	}
	return append(errs, validatePatterns(rule.OnPodConditions, at.Child("onPodConditions"))...)
}

func validateExitCodes(want *batchv1.PodFailurePolicyOnExitCodesRequirement, template *corev1.PodSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch operators := []batchv1.PodFailurePolicyOnExitCodesOperator{
		batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn,
	}; {
	case want.Operator == "":
		errs = append(errs, field.Required(at.Child("operator"), "must be In or NotIn"))
	case !slices.Contains(operators, want.Operator):
		errs = append(errs, field.NotSupported(at.Child("operator"), want.Operator, operators))
	}
	if name := want.ContainerName; name != nil {
		named := func(c corev1.Container) bool { return c.Name == *name }
		if !slices.ContainsFunc(template.Containers, named) && !slices.ContainsFunc(template.InitContainers, named) {
			errs = append(errs, field.Invalid(at.Child("containerName"), *name, "must be the name of a container or an init container of the template"))
		}
	}
	return append(errs, validateCodes(want, at.Child("values"))...)
}

func validateCodes(want *batchv1.PodFailurePolicyOnExitCodesRequirement, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case len(want.Values) == 0:
		errs = append(errs, field.Required(at, "at least one value is needed"))
	case len(want.Values) > maxExitCodes:
		errs = append(errs, field.TooMany(at, len(want.Values), maxExitCodes))
	}
	for i, code := range want.Values {
		switch {
		case slices.Contains(want.Values[:i], code):
			errs = append(errs, field.Duplicate(at.Index(i), code))
		case code == 0 && want.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn:
			errs = append(errs, field.Invalid(at.Index(i), code, "must not be 0 with operator In: exit code 0 is a success"))
		}
	}
	if !slices.IsSorted(want.Values) {
		errs = append(errs, field.Invalid(at, want.Values, "must be in ascending order"))
	}
	return errs
}

func validatePatterns(patterns []batchv1.PodFailurePolicyOnPodConditionsPattern, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(patterns) > maxPatterns {
		errs = append(errs, field.TooMany(at, len(patterns), maxPatterns))
	}
	statuses := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
	for i := range patterns {
		if patterns[i].Type == "" {
			errs = append(errs, field.Required(at.Index(i).Child("type"), "the type of a condition is needed"))
		}
		if status := patterns[i].Status; status != "" && !slices.Contains(statuses, status) {
			errs = append(errs, field.NotSupported(at.Index(i).Child("status"), status, statuses))
		}
	}
	return errs
}
