package validation

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"
)

const greaterOrEqualZero = "must be greater than or equal to 0"

// NonNegative wants a number that is not negative; an absent one is fine.
func NonNegative(value *int32, at *field.Path) field.ErrorList {
	if value == nil || *value >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, *value, greaterOrEqualZero)}
}

// Amount wants a number of pods or a percentage, not below zero; an absent one is fine.
func Amount(value *intstr.IntOrString, at *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	parsed, err := rollout.Parse(*value)
	if err != nil {
		return field.ErrorList{field.Invalid(at, value, err.Error())}
	}
	if parsed.IsNegative() {
		return field.ErrorList{field.Invalid(at, value, greaterOrEqualZero)}
	}
	return nil
}

// InPlaceStrategy validates each field of an inPlaceUpdateStrategy; an absent one is fine.
func InPlaceStrategy(in *workload.InPlaceUpdateStrategy, at *field.Path) field.ErrorList {
	if in == nil {
		return nil
	}
	errs := NonNegative(&in.GracePeriodSeconds, at.Child("gracePeriodSeconds"))
	errs = append(errs, NonNegative(in.ImagePreDownloadTimeoutSeconds, at.Child("imagePreDownloadTimeoutSeconds"))...)
	errs = append(errs, NonNegative(in.ImagePreDownloadMinUpdatedReadyPods, at.Child("imagePreDownloadMinUpdatedReadyPods"))...)
	if message := parallelism(in.ImagePreDownloadParallelism); message != "" {
		errs = append(errs, field.Invalid(at.Child("imagePreDownloadParallelism"), in.ImagePreDownloadParallelism,
			"imagePreDownloadParallelism "+message))
	}
	return errs
}

// parallelism returns the error of a number of nodes, which may be written as text.
func parallelism(value *intstr.IntOrString) string {
	if value == nil {
		return ""
	}
	text := value.String()
	if strings.HasSuffix(text, "%") {
		return "does not support percentage value"
	}
	number, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return "must be a valid integer"
	case number < 0:
		return "must be non-negative"
	}
	return ""
}
