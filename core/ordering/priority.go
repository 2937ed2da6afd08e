package ordering

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/podstate"
)

// sortByPriority sorts the indexes in order, stably. Without a matching rule nothing moves.
func sortByPriority(pods []podstate.State, order []int, o UpdateOptions) {
	switch p := o.Priority; {
	case p == nil:
	case len(p.WeightPriority) > 0:
		sortByWeight(pods, order, p.WeightPriority)
	case len(p.OrderPriority) > 0:
		sortByKey(pods, order, p.OrderPriority, o.UnkeyedFirst)
	}
}

// sortByWeight puts pods with the larger sum of matching weights first. A selector that cannot be
// read, which admission refuses, matches nothing.
func sortByWeight(pods []podstate.State, order []int, terms []workload.UpdatePriorityWeightTerm) {
	selectors := make([]labels.Selector, len(terms))
	for i := range terms {
		selector, err := metav1.LabelSelectorAsSelector(&terms[i].MatchSelector)
		if err != nil {
			selector = labels.Nothing()
		}
		selectors[i] = selector
	}
	weights := make([]int64, len(pods))
	for _, index := range order {
		for i, selector := range selectors {
			if selector.Matches(labels.Set(pods[index].Pod.Labels)) {
				weights[index] += int64(terms[i].Weight)
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(weights[j], weights[i]) })
}

// place is where an orderPriority puts a pod.
type place struct {
	level  int
	number string // decimal digits without leading zeros
}

// sortByKey puts pods with an earlier key first, inside a key those with the larger number at the
// end of the label's value.
func sortByKey(pods []podstate.State, order []int, terms []workload.UpdatePriorityOrderTerm, unkeyedFirst bool) {
	unkeyed := place{level: len(terms)}
	if unkeyedFirst {
		unkeyed.level = -1
	}
	places := make([]place, len(pods))
	for _, index := range order {
		places[index] = unkeyed
		for level, term := range terms {
			if text, ok := pods[index].Pod.Labels[term.OrderedKey]; ok {
				places[index] = place{level: level, number: trailingNumber(text)}
				break
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := places[i], places[j]
		return cmp.Or(cmp.Compare(a.level, b.level), compareNumbers(b.number, a.number))
	})
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
