package ordering

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// ByPriority sorts indexes into the pods by the priority of the options alone, stably, for workloads
// that have an order of their own. Without a matching rule nothing moves.
func ByPriority(pods []podstate.State, order []int, o UpdateOptions) []int {
	switch p := o.Priority; {
	case p != nil && len(p.WeightPriority) > 0:
		return byWeight(pods, order, p.WeightPriority)
	case p != nil && len(p.OrderPriority) > 0:
		return byKey(pods, order, p.OrderPriority, o.UnkeyedFirst)
	}
	return order
}

// byWeight puts pods with the larger sum of matching weights first. A selector that cannot be
// read, which admission refuses, matches nothing.
func byWeight(pods []podstate.State, order []int, terms []workload.UpdatePriorityWeightTerm) []int {
	selectors := make([]labels.Selector, len(terms))
	for i := range terms {
		selector, err := metav1.LabelSelectorAsSelector(&terms[i].MatchSelector)
		if err != nil {
			selector = labels.Nothing()
		}
		selectors[i] = selector
	}
	weight := func(index int) int64 {
		var sum int64
		for i, selector := range selectors {
			if selector.Matches(labels.Set(pods[index].Pod.Labels)) {
				sum += int64(terms[i].Weight)
			}
		}
		return sum
	}
	return stably(order, weight, func(a, b int64) int { return cmp.Compare(b, a) })
}

// place is where an orderPriority puts a pod.
type place struct {
	level  int
	number string // decimal digits without leading zeros
}

// byKey puts pods with an earlier key first, inside a key those with the larger number at the end of
// the label's value.
func byKey(pods []podstate.State, order []int, terms []workload.UpdatePriorityOrderTerm, unkeyedFirst bool) []int {
	unkeyed := place{level: len(terms)}
	if unkeyedFirst {
		unkeyed.level = -1
	}
	placeOf := func(index int) place {
		for level, term := range terms {
			if text, ok := pods[index].Pod.Labels[term.OrderedKey]; ok {
				return place{level: level, number: trailingNumber(text)}
			}
		}
		return unkeyed
	}
	return stably(order, placeOf, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.level, b.level), compareNumbers(b.number, a.number))
	})
}

// stably sorts the indexes by keys that are made once each.
func stably[K any](order []int, keyOf func(index int) K, compare func(a, b K) int) []int {
	type entry struct {
		key          K
		place, index int
	}
	entries := make([]entry, len(order))
	for place, index := range order {
		entries[place] = entry{keyOf(index), place, index}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(compare(a.key, b.key), cmp.Compare(a.place, b.place))
	})
	result := make([]int, len(entries))
	for i := range entries {
		result[i] = entries[i].index
	}
	return result
}

func trailingNumber(text string) string {
	digits := text[len(strings.TrimRight(text, "0123456789")):]
	return strings.TrimLeft(digits, "0")
}

// compareNumbers compares digits without leading zeros; a label's value may hold more of them than
// an integer does.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
