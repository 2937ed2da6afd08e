package subsets

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Unlimited is the limit of a subset without maxReplicas, and its room.
const Unlimited int32 = -1

// Limits returns how many pods each subset may have. A percentage is rounded up; of unknown replicas it is 0. So is the
// limit of a value that admission would refuse: its pods go to other subsets.
func Limits(spread *v1beta1.WorkloadSpread, replicas *int32) []int32 {
	limits := make([]int32, len(spread.Spec.Subsets))
	for i := range limits {
		limits[i] = limit(spread.Spec.Subsets[i].MaxReplicas, replicas)
	}
	return limits
}

func limit(most *intstr.IntOrString, replicas *int32) int32 {
	switch {
	case most == nil:
		return Unlimited
	case most.Type == intstr.Int:
		return max(0, most.IntVal)
	case replicas == nil || !strings.HasSuffix(most.StrVal, "%"):
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(most, int(*replicas), true)
	if err != nil {
		return 0
	}
	return max(0, int32(n))
}

// NeedsReplicas reports whether a limit depends on the replicas of the workload.
func NeedsReplicas(spread *v1beta1.WorkloadSpread) bool {
	for i := range spread.Spec.Subsets {
		if most := spread.Spec.Subsets[i].MaxReplicas; most != nil && most.Type == intstr.String {
			return true
		}
	}
	return false
}

// Room is how many places are left of a limit.
func Room(limit int32, s *v1beta1.SubsetStatus) int32 {
	if limit == Unlimited {
		return Unlimited
	}
	return min(limit, max(0, limit-s.Replicas-int32(len(s.CreatingPods))+int32(len(s.DeletingPods))))
}
