package ordering

import (
	"slices"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// scatter spreads the pods that match each term evenly over the order. The term that most of the
// waiting pods match comes first; each works on the order that the one before returned.
func scatter(pods []podstate.State, order []int, terms workload.UpdateScatterStrategy) []int {
	if len(terms) > 1 {
		terms = mostMatchedFirst(pods, order, terms)
	}
	for _, term := range terms {
		order = scatterTerm(pods, order, term)
	}
	return order
}

func mostMatchedFirst(pods []podstate.State, order []int, terms workload.UpdateScatterStrategy) workload.UpdateScatterStrategy {
	count := map[workload.UpdateScatterTerm]int{}
	for _, term := range terms {
		count[term] = 0
	}
	for term := range count {
		for _, index := range order {
			count[term] += number(matches(&pods[index], term))
		}
	}
	sorted := slices.Clone(terms)
	slices.SortStableFunc(sorted, func(a, b workload.UpdateScatterTerm) int { return count[b] - count[a] })
	return sorted
}

func matches(s *podstate.State, term workload.UpdateScatterTerm) bool {
	value, ok := s.Pod.Labels[term.Key]
	return ok && value == term.Value
}

// scatterTerm alternates groups of matching pods with groups of others and ends with a matching one,
// so that 0-3 plain, 4 and 5 matching become 4 0 1 2 3 5.
//
// When many of the pods that match were updated before, the waiting ones are spread as if all pods
// of the workload were to come: the plain pods that are too many for that go first.
func scatterTerm(pods []podstate.State, order []int, term workload.UpdateScatterTerm) []int {
	var matched, plain []int
	for _, index := range order {
		if matches(&pods[index], term) {
			matched = append(matched, index)
		} else {
			plain = append(plain, index)
		}
	}
	if len(matched) <= 1 || len(plain) <= 1 {
		return order
	}
	last := matched[len(matched)-1]
	matched = matched[:len(matched)-1]
	allMatched, allPlain := countAll(pods, term)
	allMatched-- // the last one stands at its place already

	scattered := make([]int, 0, len(order))
	groups := min(len(matched), len(plain))
	matchedSize := roundedQuotient(len(matched), groups)
	plainSize := roundedQuotient(len(plain), groups)
	if allPlain*len(matched) < len(plain)*allMatched {
		all := min(allMatched, allPlain)
		matchedSize = roundedQuotient(allMatched, all)
		plainSize = roundedQuotient(allPlain, all)
		groups = min(len(matched)/matchedSize, len(plain)/plainSize)
		scattered, plain = take(scattered, plain, len(plain)-groups*plainSize)
	}
	for range groups {
		scattered, matched = take(scattered, matched, matchedSize)
		scattered, plain = take(scattered, plain, plainSize)
	}
	scattered = append(scattered, matched...)
	scattered = append(scattered, plain...)
	return append(scattered, last)
}

func countAll(pods []podstate.State, term workload.UpdateScatterTerm) (matched, plain int) {
	for i := range pods {
		matched += number(matches(&pods[i], term))
	}
	return matched, len(pods) - matched
}

// take moves up to n indexes from the front of one list to the end of the other.
func take(to, from []int, n int) (grown, left []int) {
	n = min(n, len(from))
	return append(to, from[:n]...), from[n:]
}

// roundedQuotient is a/b rounded to the nearest integer, halves up; b is positive.
func roundedQuotient(a, b int) int { return (2*a + b) / (2 * b) }
