package conversion

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/cloneset/api/v1alpha1"
	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/operator/conversion"
)

// hubStrategy returns the strategy of the hub. The settings of an OnDelete set are kept in rollingUpdate, without
// effect.
func hubStrategy(in v1alpha1.CloneSetUpdateStrategy, kept *hubOnlyStrategy) v1beta1.CloneSetUpdateStrategy {
	rolling := v1beta1.RollingUpdateCloneSetStrategy{
		PodUpdatePolicy:       v1beta1.PodUpdatePolicy(in.Type),
		Partition:             in.Partition,
		MaxUnavailable:        in.MaxUnavailable,
		MaxSurge:              in.MaxSurge,
		Paused:                in.Paused,
		PriorityStrategy:      in.PriorityStrategy,
		ScatterStrategy:       in.ScatterStrategy,
		InPlaceUpdateStrategy: effective(in.InPlaceUpdateStrategy),
	}
	switch {
	case in.Type == "":
		rolling.PodUpdatePolicy = v1beta1.ReCreate
	case in.Type == v1alpha1.OnDelete && kept != nil:
		rolling.PodUpdatePolicy = kept.PodUpdatePolicy
	case in.Type == v1alpha1.OnDelete:
		rolling.PodUpdatePolicy = ""
		if isZero(rolling) {
			return v1beta1.CloneSetUpdateStrategy{Type: v1beta1.OnDelete}
		}
	}
	out := v1beta1.CloneSetUpdateStrategy{Type: v1beta1.RollingUpdate, RollingUpdate: &rolling}
	if in.Type == v1alpha1.OnDelete {
		out.Type = v1beta1.OnDelete
	}
	return out
}

// spokeStrategy returns the strategy of v1alpha1. Its type is the podUpdatePolicy unless the set is OnDelete.
func spokeStrategy(in v1beta1.CloneSetUpdateStrategy) v1alpha1.CloneSetUpdateStrategy {
	var out v1alpha1.CloneSetUpdateStrategy
	if rolling := in.RollingUpdate; rolling != nil {
		out = v1alpha1.CloneSetUpdateStrategy{
			Type:                  v1alpha1.CloneSetUpdateStrategyType(rolling.PodUpdatePolicy),
			Partition:             rolling.Partition,
			MaxUnavailable:        rolling.MaxUnavailable,
			MaxSurge:              rolling.MaxSurge,
			Paused:                rolling.Paused,
			PriorityStrategy:      rolling.PriorityStrategy,
			ScatterStrategy:       rolling.ScatterStrategy,
			InPlaceUpdateStrategy: spokeInPlace(rolling.InPlaceUpdateStrategy),
		}
	}
	switch {
	case in.Type == v1beta1.OnDelete:
		out.Type = v1alpha1.OnDelete
	case out.Type == "":
		out.Type = v1alpha1.ReCreate
	}
	return out
}

// effective returns the strategy without the fields that v1alpha1 ignores. Annotations set them, see readKeys.
func effective(in *workload.InPlaceUpdateStrategy) *workload.InPlaceUpdateStrategy {
	if in == nil {
		return nil
	}
	return &workload.InPlaceUpdateStrategy{GracePeriodSeconds: in.GracePeriodSeconds, ResizeDeadlineSeconds: in.ResizeDeadlineSeconds}
}

// spokeInPlace returns the strategy without the fields that annotations set, nil if nothing remains.
func spokeInPlace(in *workload.InPlaceUpdateStrategy) *workload.InPlaceUpdateStrategy {
	out := effective(in)
	if out != nil && isZero(*out) && !isZero(*in) {
		return nil
	}
	return out
}

// hubOnly returns the fields of an OnDelete set that v1alpha1 cannot express, or nil.
func hubOnly(in v1beta1.CloneSetUpdateStrategy) *hubOnlyStrategy {
	if in.Type != v1beta1.OnDelete || in.RollingUpdate == nil {
		return nil
	}
	if in.RollingUpdate.PodUpdatePolicy == "" && !isZero(*in.RollingUpdate) {
		return nil // whatever is set stands in the v1alpha1 form and makes a rollingUpdate again
	}
	return &hubOnlyStrategy{PodUpdatePolicy: in.RollingUpdate.PodUpdatePolicy}
}

// keepIgnored stores a v1alpha1 strategy with fields that v1alpha1 ignores in ignoredAnnotation.
func keepIgnored(in *workload.InPlaceUpdateStrategy, meta *metav1.ObjectMeta) error {
	delete(meta.Annotations, ignoredAnnotation)
	if in == nil || *in == *effective(in) {
		return nil
	}
	return conversion.PutAnnotation(meta, ignoredAnnotation, in)
}

// restoreIgnored restores the values that keepIgnored stored. Fields that v1alpha1 does not ignore keep the value of
// the hub.
func restoreIgnored(dst *v1alpha1.CloneSet) {
	var ignored workload.InPlaceUpdateStrategy
	conversion.TakeAnnotation(&dst.ObjectMeta, ignoredAnnotation, &ignored)
	if isZero(ignored) {
		return
	}
	ignored.GracePeriodSeconds, ignored.ResizeDeadlineSeconds = 0, nil
	if strategy := dst.Spec.UpdateStrategy.InPlaceUpdateStrategy; strategy != nil {
		ignored.GracePeriodSeconds = strategy.GracePeriodSeconds
		ignored.ResizeDeadlineSeconds = strategy.ResizeDeadlineSeconds
	}
	dst.Spec.UpdateStrategy.InPlaceUpdateStrategy = &ignored
}

func isZero[T any](value T) bool { return reflect.ValueOf(value).IsZero() }
