package plan

import (
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/workloads/rollout"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/ordinals"
)

// numbers are the counts that the spec asks for, with percentages resolved.
type numbers struct {
	replicas         int32 // spec.replicas
	start            int32 // the lowest ordinal
	partition        int32 // pods that stay at the current revision
	maxUnavailable   int   // pods that may be out of service; at least 1
	scaleUnavailable int   // pods that may be unavailable while pods are created; math.MaxInt without a limit
	minReady         int32 // seconds
}

// readNumbers resolves the spec's numbers. The fields of rollingUpdate count only with type RollingUpdate.
func readNumbers(set *v1beta1.StatefulSet, featureGates FeatureGates) (numbers, ordinals.Reserved, error) {
	r := rollingUpdate(set)
	n := numbers{
		replicas:         valueOr(set.Spec.Replicas, 1),
		scaleUnavailable: math.MaxInt,
		minReady:         set.Spec.MinReadySeconds,
	}
	n.partition = max(valueOr(r.Partition, 0), 0)
	if seconds := valueOr(r.MinReadySeconds, 0); seconds > 0 {
		n.minReady = seconds
	}
	if featureGates.StartOrdinal && set.Spec.Ordinals != nil {
		n.start = set.Spec.Ordinals.Start
	}
	var err error
	if n.maxUnavailable, err = atLeastOne(r.MaxUnavailable, n.replicas); err != nil {
		return n, nil, err
	}
	if s := set.Spec.ScaleStrategy; s != nil && s.MaxUnavailable != nil && !ordered(set) {
		if n.scaleUnavailable, err = atLeastOne(s.MaxUnavailable, n.replicas); err != nil {
			return n, nil, err
		}
	}
	reserved, errs := ordinals.Parse(set.Spec.ReserveOrdinals, field.NewPath("spec", "reserveOrdinals"))
	if len(errs) > 0 {
		return n, nil, fmt.Errorf("no pods are created or deleted until the spec is corrected: %w", errs.ToAggregate())
	}
	return n, reserved, nil
}

// atLeastOne is a maxUnavailable of either kind: percentages of replicas are rounded down, and nothing
// is 1. 20% of 10 is 2, 5% of 10 is 1.
func atLeastOne(m *intstr.IntOrString, replicas int32) (int, error) {
	if m == nil {
		return 1, nil
	}
	n, err := rollout.Scaled("maxUnavailable", *m, replicas, rollout.RoundDown)
	return int(max(n, 1)), err
}

// rollingUpdate is spec.updateStrategy.rollingUpdate, empty where absent or without effect.
func rollingUpdate(set *v1beta1.StatefulSet) v1beta1.RollingUpdateStatefulSetStrategy {
	if r := set.Spec.UpdateStrategy.RollingUpdate; r != nil && !onDelete(set) {
		return *r
	}
	return v1beta1.RollingUpdateStatefulSetStrategy{}
}

func inPlaceStrategy(set *v1beta1.StatefulSet) workload.InPlaceUpdateStrategy {
	return valueOr(rollingUpdate(set).InPlaceUpdateStrategy, workload.InPlaceUpdateStrategy{})
}

func onDelete(set *v1beta1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// ordered reports whether pods are created, deleted and updated one after the other.
func ordered(set *v1beta1.StatefulSet) bool {
	return set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

func valueOr[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}
