package subsets

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// Ordinals are how a StatefulSet numbers its pods.
type Ordinals struct {
	// Start is the first number.
	Start int
	// Reserved are numbers that no pod has.
	Reserved []Range
}

// Range are the numbers from First to Last.
type Range struct{ First, Last int }

// Rank returns how many pods of lower numbers there are, and whether the name ends with a number that a pod may have.
func (o Ordinals) Rank(pod string) (int, bool) {
	cut := strings.LastIndexByte(pod, '-')
	n, err := strconv.Atoi(pod[cut+1:])
	if cut < 0 || err != nil || n < o.Start {
		return 0, false
	}
	skipped, isReserved := o.reservedUpTo(n)
	return n - o.Start - skipped, !isReserved
}

// reservedUpTo returns how many of the numbers from Start to n are reserved, and whether n is one of them. The ranges may
// be long, and overlap: they are added, and their numbers never counted one by one.
func (o Ordinals) reservedUpTo(n int) (count int, isReserved bool) {
	ranges := slices.Clone(o.Reserved)
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	next := o.Start // the first number that is not counted yet
	for _, r := range ranges {
		first := max(r.First, next)
		last := min(r.Last, n)
		if first > last {
			continue
		}
		count, next = count+last-first+1, last+1
		isReserved = isReserved || last == n
	}
	return count, isReserved
}

// SubsetOfRank returns the subset of the pod with so many pods of lower numbers: the subsets are filled one after the
// other. A closed subset is left out. None is returned for numbers beyond all limits.
func SubsetOfRank(spread *v1beta1.WorkloadSpread, limits []int32, rank int) int {
	end := 0
	for i := range limits {
		name := spread.Spec.Subsets[i].Name
		j := slices.IndexFunc(spread.Status.SubsetStatuses, func(s v1beta1.SubsetStatus) bool { return s.Name == name })
		if j >= 0 && IsUnschedulable(spread.Status.SubsetStatuses[j].Conditions) {
			continue
		}
		if end += int(limits[i]); limits[i] == Unlimited || rank < end {
			return i
		}
	}
	return None
}
