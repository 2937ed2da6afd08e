package subsets

import (
	"time"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// PatienceOf returns how long a pod may be unschedulable; 0 means without end.
func PatienceOf(spread *v1beta1.WorkloadSpread) time.Duration {
	s := spread.Spec.ScheduleStrategy
	if s.Type != v1beta1.AdaptiveStrategy || s.Adaptive == nil || s.Adaptive.RescheduleCriticalSeconds == nil {
		return 0
	}
	return time.Duration(max(0, *s.Adaptive.RescheduleCriticalSeconds)) * time.Second
}

// Reschedules reports whether pods that cannot be scheduled are deleted.
func Reschedules(spread *v1beta1.WorkloadSpread) bool {
	return PatienceOf(spread) > 0 && len(spread.Spec.Subsets) > 1
}
