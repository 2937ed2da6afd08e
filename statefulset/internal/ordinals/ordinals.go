package ordinals

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Range is the ordinals from First to Last, both included.
type Range struct {
	// First is the lowest ordinal, 0 or more.
	First int32
	// Last is the highest ordinal, not less than First.
	Last int32
}

// Reserved is a set of ordinals: ranges in ascending order that neither overlap nor touch. The zero
// value reserves nothing.
type Reserved []Range

// merge joins ranges in any order.
func merge(ranges []Range) Reserved {
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var merged Reserved
	for _, r := range ranges {
		last := len(merged) - 1
		if last < 0 || int64(r.First) > int64(merged[last].Last)+1 {
			merged = append(merged, r)
			continue
		}
		merged[last].Last = max(merged[last].Last, r.Last)
	}
	return merged
}

// Has reports whether the ordinal is reserved.
func (r Reserved) Has(ordinal int32) bool {
	_, found := find(r, ordinal)
	return found
}

// find is the range with the ordinal, or else the first one behind it.
func find(ranges []Range, ordinal int32) (index int, found bool) {
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].Last >= ordinal })
	return i, i < len(ranges) && ranges[i].First <= ordinal
}

// Live is the ordinals that run: the lowest count ones from start on that are not reserved. A
// negative start is 0, a negative count none. There are fewer only where the ordinals, of which
// 2^31-1 is the last, run out.
//
//	4 from 0 without 1 is 0 2 3 4; 3 from 0 without 0 and 2-5 is 1 6 7; 4 from 2 without 1 and 3 is 2 4 5 6.
func (r Reserved) Live(start, count int32) Live {
	var l Live
	next := int64(max(start, 0))
	i, _ := find(r, int32(next))
	for left := int64(max(count, 0)); left > 0 && next <= math.MaxInt32; i++ {
		end := int64(math.MaxInt32) + 1
		if i < len(r) {
			end = int64(r[i].First)
		}
		if n := min(end-next, left); n > 0 {
			l.ranges = append(l.ranges, Range{int32(next), int32(next + n - 1)})
			l.before = append(l.before, l.count)
			l.count, left = l.count+int(n), left-n
		}
		if i == len(r) {
			break
		}
		next = int64(r[i].Last) + 1
	}
	return l
}
