package plan

import (
	"errors"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// total returns how many pods the workloads want.
func total(protected *int32, workloads []disruption.Workload) int32 {
	if protected != nil {
		return *protected
	}
	var sum int64
	for i := range workloads {
		sum += int64(workloads[i].Replicas)
	}
	return int32(min(sum, math.MaxInt32)) //nolint:gosec // it is bounded
}

// Desired returns how many pods must stay available of workloads that want so many.
func Desired(spec *v1beta1.PodUnavailableBudgetSpec, replicas int32) (int32, error) {
	return desired(spec, replicas, false)
}

// desired returns how many pods must stay available, given how many the workloads want. If the limit cannot be evaluated
// it is all of them, with an error. Orphaned is true if a minimum in absolute terms has lost its meaning: no workload
// wants pods, and none of the pods is without one.
func desired(spec *v1beta1.PodUnavailableBudgetSpec, total int32, orphaned bool) (int32, error) {
	switch {
	case spec.MaxUnavailable != nil:
		n, err := amount(spec.MaxUnavailable, total)
		if err != nil {
			return total, fmt.Errorf("evaluate spec.maxUnavailable: %w", err)
		}
		return max(0, total-n), nil
	case spec.MinAvailable != nil:
		n, err := amount(spec.MinAvailable, total)
		if err != nil {
			return total, fmt.Errorf("evaluate spec.minAvailable: %w", err)
		}
		if orphaned {
			return 0, nil
		}
		return n, nil
	}
	return total, errors.New("set spec.maxUnavailable or spec.minAvailable")
}

// amount evaluates a number or a percentage, rounded up.
func amount(value *intstr.IntOrString, total int32) (int32, error) {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, int(total), true)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s is out of range", value.String())
	}
	return int32(n), nil
}
