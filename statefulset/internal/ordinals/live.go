package ordinals

import "iter"

// Live is the ordinals that run, counted by rank: the position among them, 0 for the lowest. The
// zero value is none.
type Live struct {
	ranges []Range
	before []int // ordinals before each range
	count  int
}

// Len is how many ordinals run.
func (l Live) Len() int { return l.count }

// Rank is the rank of the ordinal, and whether it runs at all.
func (l Live) Rank(ordinal int32) (rank int, runs bool) {
	i, found := find(l.ranges, ordinal)
	if !found {
		return 0, false
	}
	return l.before[i] + int(ordinal-l.ranges[i].First), true
}

// All is the ordinals in ascending order, with their ranks.
func (l Live) All() iter.Seq2[int, int32] {
	return func(yield func(int, int32) bool) {
		rank := 0
		for _, r := range l.ranges {
			for ordinal := int64(r.First); ordinal <= int64(r.Last); ordinal++ {
				if !yield(rank, int32(ordinal)) {
					return
				}
				rank++
			}
		}
	}
}
