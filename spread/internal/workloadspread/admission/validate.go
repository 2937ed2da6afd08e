package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/operator/admission"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/conversion"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloads"
)

// ControlPlaneLabel keeps webhooks of pods away from a namespace, whatever its value.
const ControlPlaneLabel = "control-plane"

// Spreads has the webhooks of the kind.
type Spreads struct {
	Spreads *List
	// Templates reads the pod templates of targets, and Cluster judges them.
	Templates Templates
	Cluster   podtemplate.Cluster
	// Kinds knows which workloads can be spread.
	Kinds *workloads.Config
	// Serves reports whether the cluster serves a kind.
	Serves func(schema.GroupKind) bool
	// Mark marks a namespace that is to have a WorkloadSpread, so that webhooks are called for its pods.
	Mark func(ctx context.Context, namespace string) error
	// IsExempt reports whether webhooks are called for no pod of the namespace.
	IsExempt func(ctx context.Context, namespace string) bool
	// Pause is how long a subset gets no new pods after pods were unschedulable there.
	Pause int32
}

// Webhook answers the API server about WorkloadSpreads.
func (w *Spreads) Webhook() admission.Webhook[*v1beta1.WorkloadSpread] {
	return admission.Webhook[*v1beta1.WorkloadSpread]{
		Kind:     conversion.WorkloadSpreads(),
		Validate: w.validate,
		Convert:  conversion.Convert,
	}
}

func (w *Spreads) validate(ctx context.Context, req admission.Request[*v1beta1.WorkloadSpread]) (admission.Findings, error) {
	// Rules may have become stricter, and a flag shorter, since a spec was stored: you can still label the object.
	if req.Old != nil && equality.Semantic.DeepEqual(req.Old.Spec, req.New.Spec) {
		return admission.Findings{}, nil
	}
	errs, err := w.validateTarget(ctx, req.New, req.Old, req.Namespace)
	if err != nil {
		return admission.Findings{}, apierrors.NewServiceUnavailable(err.Error())
	}
	findings := admission.Findings{Errors: append(errs, Validate(req.New, w.Pause)...), Warnings: warnings(req.New)}
	if len(findings.Errors) == 0 {
		found, err := w.withTarget(ctx, req.New, req.Old, req.Namespace)
		if err != nil {
			return admission.Findings{}, apierrors.NewServiceUnavailable(err.Error())
		}
		findings.Errors = found.Errors
		findings.Warnings = append(findings.Warnings, found.Warnings...)
	}
	if len(findings.Errors) > 0 || req.Operation != admissionv1.Create {
		return findings, nil
	}
	if ref := req.New.Spec.TargetReference; !w.Serves(workloads.KindOf(ref)) {
		findings.Warnings = append(findings.Warnings, fmt.Sprintf("spec.targetRef: the cluster does not serve kind %s of %s", ref.Kind, ref.APIVersion))
	}
	if w.IsExempt(ctx, req.Namespace) {
		findings.Warnings = append(findings.Warnings, fmt.Sprintf(
			"this WorkloadSpread has no effect: namespace %s is exempt (kube-system, the namespace of the operator, label %s)", req.Namespace, ControlPlaneLabel))
	}
	if req.DryRun {
		return findings, nil
	}
	w.Spreads.expect(req.Namespace)
	if err := w.Mark(ctx, req.Namespace); err != nil { // the controller tries again, and a right may be missing
		findings.Warnings = append(findings.Warnings, "the namespace could not be labelled, so pods are not spread yet (retried): "+err.Error())
	}
	if findings.Errors, err = w.validateAlone(ctx, req.New, req.Namespace); err != nil { // that took a while
		return admission.Findings{}, apierrors.NewServiceUnavailable(err.Error())
	}
	return findings, nil
}

// warnings are about values that are allowed and have no effect, or another one than one may think.
func warnings(s *v1beta1.WorkloadSpread) (all []string) {
	for i := range len(s.Spec.Subsets) - 1 {
		if s.Spec.Subsets[i].MaxReplicas == nil && s.Spec.ScheduleStrategy.Type != v1beta1.AdaptiveStrategy {
			all = append(all, fmt.Sprintf("subset %q has no maxReplicas, so it takes all pods: later subsets stay empty", s.Spec.Subsets[i].Name))
			break
		}
	}
	for i := range s.Spec.Subsets {
		for _, unknown := range unknownFields(s.Spec.Subsets[i].Patch.Raw) {
			all = append(all, fmt.Sprintf("subset %q: patch: %s has no effect", s.Spec.Subsets[i].Name, unknown))
		}
	}
	if workloads.KindOf(s.Spec.TargetReference) == workloads.Job && subsets.Reschedules(s) {
		all = append(all, "spec.scheduleStrategy: each pod of a Job that is deleted because it is unschedulable counts as failed: "+
			"at most backoffLimit pods are deleted, and 0 if the Job has backoffLimitPerIndex")
	}
	return all
}

func specPath() *field.Path { return field.NewPath("spec") }

// validateTarget checks the target against the stored spread, the kinds that can be spread and the other spreads.
func (w *Spreads) validateTarget(ctx context.Context, s, old *v1beta1.WorkloadSpread, namespace string) (field.ErrorList, error) {
	at := specPath().Child("targetRef")
	ref := s.Spec.TargetReference
	if ref == nil {
		return field.ErrorList{field.Required(at, "apiVersion, kind and name of the workload are required")}, nil
	}
	if errs := validateReference(ref, at); len(errs) > 0 {
		return errs, nil
	}
	var errs field.ErrorList
	kind := workloads.KindOf(ref)
	if old != nil && old.Spec.TargetReference != nil {
		if before := old.Spec.TargetReference; workloads.KindOf(before) != kind || before.Name != ref.Name {
			errs = append(errs, field.Forbidden(at, "group, kind and name are immutable: create a new WorkloadSpread"))
		}
		return errs, nil
	}
	errs, err := w.validateKind(ctx, kind, at)
	if err != nil || len(errs) > 0 {
		return errs, err
	}
	return w.validateAlone(ctx, s, namespace)
}

// validateAlone checks that no other spread has the same target. Two that are created at once may both pass: then the pods
// belong to one of them (subsets.Precedes).
func (w *Spreads) validateAlone(ctx context.Context, s *v1beta1.WorkloadSpread, namespace string) (field.ErrorList, error) {
	ref := s.Spec.TargetReference
	other, err := w.Spreads.find(ctx, namespace, func(other *v1beta1.WorkloadSpread) bool {
		o := other.Spec.TargetReference
		return o != nil && other.Name != s.Name && other.DeletionTimestamp == nil && workloads.KindOf(o) == workloads.KindOf(ref) && o.Name == ref.Name
	})
	if err != nil || other == nil {
		return nil, err
	}
	return field.ErrorList{field.Invalid(specPath().Child("targetRef"), ref.Name, "WorkloadSpread "+other.Name+" has the same target")}, nil
}

// validateReference checks that the reference is complete.
func validateReference(ref *v1beta1.TargetReference, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, value := range map[string]string{
		"apiVersion": ref.APIVersion,
		"kind":       ref.Kind,
		"name":       ref.Name,
	} {
		if value == "" {
			errs = append(errs, field.Required(at.Child(name), ""))
		}
	}
	if _, err := schema.ParseGroupVersion(ref.APIVersion); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), ref.APIVersion, err.Error()))
	}
	return errs
}

func (w *Spreads) validateKind(ctx context.Context, kind schema.GroupKind, at *field.Path) (field.ErrorList, error) {
	known, err := w.Kinds.Knows(ctx, kind)
	if err != nil && !known {
		return nil, fmt.Errorf("read the allowed kinds: %w", err)
	}
	if known {
		return nil, nil
	}
	var groups []string
	for _, k := range workloads.BuiltIn() {
		if k.Kind == kind.Kind {
			groups = append(groups, k.Group)
		}
	}
	if len(groups) > 0 {
		return field.ErrorList{field.NotSupported(at.Child("apiVersion"), kind.Group, groups)}, nil
	}
	return field.ErrorList{field.Invalid(at, kind.String(), fmt.Sprintf(
		"the kind must be enabled: add it to key %s of ConfigMap %s in the operator's namespace", workloads.ConfigMapKey, workloads.ConfigMapName))}, nil
}

// Validate checks the values that need no look at other objects. pause, in seconds, bounds the patience of strategy
// Adaptive: a pod must not come around to the first subset before that one gets pods again.
func Validate(s *v1beta1.WorkloadSpread, pause int32) field.ErrorList {
	at := specPath().Child("subsets")
	if len(s.Spec.Subsets) == 0 {
		return field.ErrorList{field.Required(at, "at least one subset is required")}
	}
	var errs field.ErrorList
	for i := range s.Spec.Subsets {
		errs = append(errs, validateSubset(&s.Spec.Subsets[i], at.Index(i))...)
		name := s.Spec.Subsets[i].Name
		first := slices.IndexFunc(s.Spec.Subsets, func(o v1beta1.WorkloadSpreadSubset) bool { return o.Name == name })
		if name != "" && first < i {
			errs = append(errs, field.Duplicate(at.Index(i).Child("name"), name))
		}
	}
	errs = append(errs, validateLimits(s, at)...)
	errs = append(errs, validateStrategy(s, pause)...)
	return append(errs, validateFilter(s.Spec.TargetFilter)...)
}

func validateSubset(subset *v1beta1.WorkloadSpreadSubset, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if subset.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	errs = append(errs, validateNodes(subset, at)...)
	for i := range subset.Tolerations {
		errs = append(errs, validateToleration(&subset.Tolerations[i], at.Child("tolerations").Index(i))...)
	}
	if err := subsets.Patch(&corev1.Pod{}, subset.Patch.Raw); err != nil {
		errs = append(errs, field.Invalid(at.Child("patch"), string(subset.Patch.Raw), "must be a strategic merge patch for a pod: "+err.Error()))
	}
	return errs
}

func validateToleration(t *corev1.Toleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Key != "" {
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
	} else if t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Invalid(at.Child("operator"), t.Operator, "must be Exists when key is empty"))
	}
	compares := t.Operator == corev1.TolerationOpLt || t.Operator == corev1.TolerationOpGt
	operators := []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt}
	switch {
	case compares && !isNumber(t.Value):
		errs = append(errs, field.Invalid(at.Child("value"), t.Value, fmt.Sprintf("must be a whole number when operator is %s", t.Operator)))
	case t.Operator != corev1.TolerationOpExists && len(validation.IsValidLabelValue(t.Value)) > 0:
		errs = append(errs, field.Invalid(at.Child("value"), t.Value, strings.Join(validation.IsValidLabelValue(t.Value), "; ")))
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		errs = append(errs, field.Invalid(at.Child("value"), t.Value, "must be empty when operator is Exists"))
	case t.Operator != "" && !slices.Contains(operators, t.Operator):
		errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, operators))
	}
	return append(errs, validateEffect(t, at)...)
}

func validateEffect(t *corev1.Toleration, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if t.Effect != "" && !slices.Contains(effects, t.Effect) {
		errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, effects))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute when tolerationSeconds is set"))
	}
	return errs
}

// isNumber reports whether a taint's value can be compared with the text.
func isNumber(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == text
}

// validateLimits checks maxReplicas: all of one type, percentages that add up.
func validateLimits(s *v1beta1.WorkloadSpread, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	var first *intstr.IntOrString
	sum, unlimited := 0, 0
	ordinals := workloads.HasOrdinals(workloads.KindOf(s.Spec.TargetReference))
	for i := range s.Spec.Subsets {
		most := s.Spec.Subsets[i].MaxReplicas
		path := at.Index(i).Child("maxReplicas")
		if most == nil {
			unlimited++
			continue
		}
		first = cmp.Or(first, most)
		if most.Type != first.Type {
			errs = append(errs, field.Invalid(path, most.String(), "must be either numbers or percentages in all subsets"))
			continue
		}
		percent, err := validateLimit(most, ordinals, path)
		if sum += percent; err == nil && sum > 100 && sum-percent <= 100 {
			err = field.Invalid(path, most.StrVal, fmt.Sprintf("the sum of all percentages is %d: it must be at most 100", sum))
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && first != nil && first.Type == intstr.String && unlimited == 0 && sum < 100 {
		errs = append(errs, field.Invalid(at.Index(0).Child("maxReplicas"), s.Spec.Subsets[0].MaxReplicas.StrVal,
			fmt.Sprintf("the sum of all percentages is %d: it must be 100 if every subset has maxReplicas", sum)))
	}
	return errs
}

// validateLimit checks one maxReplicas, and returns its percentage: 0 for a number and for an invalid value.
func validateLimit(most *intstr.IntOrString, ordinals bool, path *field.Path) (int, *field.Error) {
	percent, ok := percentOf(most)
	switch {
	case most.Type == intstr.Int && most.IntVal < 0:
		return 0, field.Invalid(path, most.IntVal, "must not be negative")
	case most.Type == intstr.String && !ok:
		return 0, field.Invalid(path, most.StrVal, "must be a number or a percentage without fractions, such as 30%")
	case most.Type == intstr.String && ordinals:
		return 0, field.Invalid(path, most.StrVal, "must be a number: StatefulSets do not support percentages")
	}
	return percent, nil
}

// percentOf returns the number before the percent sign.
func percentOf(most *intstr.IntOrString) (int, bool) {
	digits, ok := strings.CutSuffix(most.StrVal, "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if most.Type != intstr.String || !ok || err != nil {
		return 0, false
	}
	return int(n), true
}

func validateStrategy(s *v1beta1.WorkloadSpread, pause int32) field.ErrorList {
	strategy := s.Spec.ScheduleStrategy
	at := specPath().Child("scheduleStrategy")
	types := []v1beta1.ScheduleStrategyType{v1beta1.AdaptiveStrategy, v1beta1.FixedStrategy}
	if strategy.Type != "" && !slices.Contains(types, strategy.Type) {
		return field.ErrorList{field.NotSupported(at.Child("type"), strategy.Type, types)}
	}
	if strategy.Adaptive == nil {
		return nil
	}
	if strategy.Type != v1beta1.AdaptiveStrategy {
		return field.ErrorList{field.Invalid(at.Child("type"), strategy.Type, "must be Adaptive when adaptive is set")}
	}
	var errs field.ErrorList
	n := int32(len(s.Spec.Subsets))
	if n > 1 && s.Spec.Subsets[n-1].MaxReplicas != nil {
		errs = append(errs, field.Invalid(at.Child("adaptive"), "", "the last subset must have no maxReplicas: it takes the pods that are unschedulable in other subsets"))
	}
	seconds := strategy.Adaptive.RescheduleCriticalSeconds
	path := at.Child("adaptive", "rescheduleCriticalSeconds")
	switch {
	case seconds == nil:
	case *seconds < 0:
		errs = append(errs, field.Invalid(path, *seconds, "must not be negative"))
	case n > 1 && *seconds > longestPatience(pause, n):
		errs = append(errs, field.Invalid(path, *seconds, fmt.Sprintf("must be at most %d with %d subsets", longestPatience(pause, n), n)))
	}
	return errs
}

// longestPatience is how long a pod may wait in each of n subsets.
func longestPatience(pause, n int32) int32 { return max(0, pause-5) / (n - 1) }

func validateFilter(f *v1beta1.TargetFilter) field.ErrorList {
	if f == nil {
		return nil
	}
	at := specPath().Child("targetFilter")
	errs := metavalidation.ValidateLabelSelector(f.Selector, metavalidation.LabelSelectorValidationOptions{}, at.Child("selector"))
	if f.Selector != nil && len(errs) == 0 {
		if _, err := metav1.LabelSelectorAsSelector(f.Selector); err != nil {
			errs = append(errs, field.Invalid(at.Child("selector"), "", err.Error()))
		}
	}
	for i, path := range f.ReplicasPathList {
		if path == "" || slices.Contains(strings.Split(path, "."), "") {
			errs = append(errs, field.Invalid(at.Child("replicasPathList").Index(i), path, "must be names or indexes, separated by dots"))
		}
	}
	return errs
}
