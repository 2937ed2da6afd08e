package admission

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/workloads/ordering"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"
	"github.com/flotilla-project/flotilla/core/workloads/validation"
)

// words are the messages that differ between the versions: because their fields do, and because clients of OpenKruise
// know the messages of v1alpha1.
type words struct{ policy, surge, unreadable, terminating, foreign string }

func wordsOf(version string) words {
	if version == v1alpha1.GroupVersion.Version {
		return words{
			policy:      "must be 'ReCreate', InPlaceIfPossible or 'InPlaceOnly' (or 'OnDelete')",
			surge:       "can not use maxSurge with strategy type InPlaceOnly",
			unreadable:  "find pod %s failed: %v",
			terminating: "find pod %s already terminating",
			foreign:     "find pod %s owner is not this CloneSet",
		}
	}
	return words{
		policy:      "must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'",
		surge:       "can not use maxSurge with podUpdatePolicy InPlaceOnly",
		unreadable:  "reading pod %s failed: %v",
		terminating: "pod %s is already being deleted",
		foreign:     "pod %s does not belong to this CloneSet",
	}
}

// validateProgressDeadline: a pod can become available after minReadySeconds at the earliest.
func validateProgressDeadline(spec *v1beta1.CloneSetSpec) field.ErrorList {
	path := specPath().Child("progressDeadlineSeconds")
	deadline := spec.ProgressDeadlineSeconds
	switch {
	case deadline == nil || *deadline == math.MaxInt32: // no deadline
		return nil
	case *deadline < 0:
		return validation.NonNegative(deadline, path)
	case *deadline <= spec.MinReadySeconds:
		return field.ErrorList{field.Invalid(path, *deadline, "must be greater than minReadySeconds")}
	}
	return nil
}

func validateUpdateStrategy(spec *v1beta1.CloneSetSpec, version string) field.ErrorList {
	path := specPath().Child("updateStrategy")
	strategy := &spec.UpdateStrategy
	var errs field.ErrorList
	switch strategy.Type {
	case "", v1beta1.RollingUpdate, v1beta1.OnDelete:
	default:
		errs = append(errs, field.Invalid(path.Child("type"), strategy.Type, "must be 'RollingUpdate' or 'OnDelete'"))
	}
	rolling := strategy.RollingUpdate
	if rolling == nil {
		return errs
	}
	path = path.Child("rollingUpdate")
	formErrs := validateForm(rolling, path, version)
	errs = append(errs, formErrs...)
	// With OnDelete the members have no effect, so that their combination does not matter; and where the
	// numbers cannot be read there is nothing to combine.
	if strategy.Type == v1beta1.OnDelete || len(formErrs) > 0 {
		return errs
	}
	return append(errs, validateSpeed(rolling, ptr.Deref(spec.Replicas, defaultReplicas), path, version)...)
}

// validateForm validates each field by itself.
func validateForm(rolling *v1beta1.RollingUpdateCloneSetStrategy, path *field.Path, version string) field.ErrorList {
	var errs field.ErrorList
	switch rolling.PodUpdatePolicy {
	case "", v1beta1.ReCreate, v1beta1.InPlaceIfPossible, v1beta1.InPlaceOnly:
	default:
		errs = append(errs, field.Invalid(path.Child("podUpdatePolicy"), rolling.PodUpdatePolicy, wordsOf(version).policy))
	}
	errs = append(errs, validation.Amount(rolling.Partition, path.Child("partition"))...)
	errs = append(errs, validation.Amount(rolling.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, validation.Amount(rolling.MaxSurge, path.Child("maxSurge"))...)
	errs = append(errs, ordering.ValidatePriority(rolling.PriorityStrategy, path.Child("priorityStrategy"))...)
	errs = append(errs, ordering.ValidateScatter(rolling.ScatterStrategy, path.Child("scatterStrategy"))...)
	return append(errs, validation.InPlaceStrategy(rolling.InPlaceUpdateStrategy, path.Child("inPlaceUpdateStrategy"))...)
}

// validateSpeed wants an update to be able to move. Percentages are rounded up here, so that only a
// strategy that stands still at every number of replicas is refused.
func validateSpeed(rolling *v1beta1.RollingUpdateCloneSetStrategy, replicas int32, path *field.Path, version string) field.ErrorList {
	surge := scaled(rolling.MaxSurge, "0", max(replicas, 1))
	unavailable := scaled(rolling.MaxUnavailable, rollout.DefaultMaxUnavailable, replicas)
	var errs field.ErrorList
	if surge > 0 && rolling.PodUpdatePolicy == v1beta1.InPlaceOnly {
		errs = append(errs, field.Invalid(path.Child("maxSurge"), rolling.MaxSurge, wordsOf(version).surge))
	}
	if replicas > 0 && unavailable < 1 && surge < 1 {
		errs = append(errs, field.Invalid(path.Child("maxUnavailable"), rolling.MaxUnavailable,
			"maxUnavailable and maxSurge should not both be less than 1"))
	}
	return errs
}

// scaled is a well-formed amount, rounded up.
func scaled(value *intstr.IntOrString, absent string, replicas int32) int32 {
	if value == nil {
		value = new(intstr.Parse(absent))
	}
	parsed, err := rollout.Parse(*value)
	if err != nil {
		return 0
	}
	return parsed.ScaledTo(replicas, rollout.RoundUp)
}
