package rollout

import (
	"math"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// MostPods is the most pods that a field of a strategy may mean: more than any cluster has, and few enough to add up.
const MostPods = math.MaxInt32 / 2

// DefaultMaxUnavailable is how an absent maxUnavailable of an update strategy reads.
const DefaultMaxUnavailable = "20%"

// Partition is how many of the replicas stay at the old revision: updateStrategy.partition, between 0 and replicas; nil
// is 0. Percentages are rounded up, but one below 100 % never keeps all pods of a workload with more than one: an
// update of 1 % updates at least one pod.
//
//	80 % of 10 is 8, 10 % of 4 is 1, 90 % of 4 is 3 (not 4), 99 % of 1 is 1.
func Partition(p *intstr.IntOrString, replicas int32) (int32, error) {
	if p == nil {
		return 0, nil
	}
	a, err := parseField("partition", *p)
	if err != nil {
		return 0, err
	}
	keep := a.ScaledTo(replicas, RoundUp)
	if a.isPercentage() && !a.isHundredPercent() && replicas > 1 && keep == replicas {
		keep--
	}
	return min(max(keep, 0), max(replicas, 0)), nil
}

// KeepsPods reports whether updateStrategy.partition keeps pods at the old revision, whatever the replicas. A workload
// with no replicas has none that a partition could keep, and has it all the same.
func KeepsPods(p *intstr.IntOrString) bool {
	if p == nil {
		return false
	}
	a, err := Parse(*p)
	return err == nil && a.isPositive()
}

// MaxSurge is how many pods an update may add: updateStrategy.maxSurge, percentages of replicas
// rounded up, at most MostPods; nil is 0, and so is a paused strategy.
func MaxSurge(p *intstr.IntOrString, replicas int32, paused bool) (int32, error) {
	if p == nil {
		return 0, nil
	}
	surge, err := Scaled("maxSurge", *p, replicas, RoundUp)
	if err != nil || paused {
		return 0, err
	}
	return min(max(surge, 0), MostPods), nil
}

// MaxUnavailable is how many pods an update may make unavailable: updateStrategy.maxUnavailable,
// nil read as DefaultMaxUnavailable. Percentages of replicas are rounded up when surge is 0, since
// nothing could move otherwise, else down. It is at most MostPods.
//
//	20 % of 3 is 1 without surge and 0 with it.
func MaxUnavailable(p *intstr.IntOrString, replicas, surge int32) (int32, error) {
	if p == nil {
		p = &intstr.IntOrString{Type: intstr.String, StrVal: DefaultMaxUnavailable}
	}
	rounding := RoundUp
	if surge > 0 {
		rounding = RoundDown
	}
	unavailable, err := Scaled("maxUnavailable", *p, replicas, rounding)
	return min(max(unavailable, 0), MostPods), err
}

// ScaleMaxUnavailable is how many unavailable pods still let new ones be created:
// scaleStrategy.maxUnavailable, percentages of replicas rounded up; nil is without limit,
// math.MaxInt32.
func ScaleMaxUnavailable(p *intstr.IntOrString, replicas int32) (int32, error) {
	if p == nil {
		return math.MaxInt32, nil
	}
	unavailable, err := Scaled("maxUnavailable", *p, replicas, RoundUp)
	return max(unavailable, 0), err
}
