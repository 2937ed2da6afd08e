package ordering

import (
	"math"
	"slices"

	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// ForDeletion is the order in which the pods go when a workload scales in, as indexes into pods,
// the first to go first:
//
//  1. not assigned to a node before assigned
//  2. Pending before Unknown before Running
//  3. not available before available, then not ready before ready
//  4. lower deletion cost before higher
//  5. higher rank before lower
//  6. ready since an unknown time, then for a shorter time before a longer one
//  7. more restarts before fewer
//  8. created at an unknown time, then newer before older
//  9. the name
//
// The ranks are the result of SameNodeRanks or SpreadRanks for the same pods; nil ranks all alike.
func ForDeletion(pods []podstate.State, rank []float64) []int {
	every := make([]int, len(pods))
	for i := range every {
		every[i] = i
	}
	all := sortKeys(pods, every)
	for i := range rank {
		all[i].rank = rank[i]
	}
	return sorted(all, (*sortKey).forDeletion)
}

// SameNodeRanks spreads pods over nodes: of the n pods on one node the first to go has rank n-1 and
// the last one 0. Pods without a node have rank 0. Others stay, and count on their nodes.
func SameNodeRanks(pods, others []podstate.State) []float64 {
	all := slices.Concat(pods, others)
	ranks := make([]float64, len(all))
	node := func(i int) (string, bool) { return all[i].Pod.Spec.NodeName, all[i].Assigned }
	for _, domain := range domains(before(ForDeletion(pods, nil), len(all)), node) {
		for i, index := range domain {
			ranks[index] = float64(len(domain) - 1 - i)
		}
	}
	return ranks[:len(pods)]
}

// before is the order, followed by the indexes up to n that it lacks.
func before(order []int, n int) []int {
	for i := len(order); i < n; i++ {
		order = append(order, i)
	}
	return order
}

// SpreadConstraint is one rule of topology spread.
type SpreadConstraint struct {
	// TopologyKey is the label of nodes with the domain as its value.
	TopologyKey string
	// LimitedValues restricts the rule to some of the domains; empty means all.
	LimitedValues []string
}

// SpreadRanks spreads pods over topology domains: for each constraint with d domains, the i-th to go of the n pods in a
// domain, counted from 0, has rank (n-i)·ln(d+2); the ranks of all constraints add up. Constraints with more domains
// weigh more. Pods without node, or on a node with unknown labels or without the key, get nothing from that constraint.
// nodeLabels returns nil for unknown nodes. Others stay, and count in their domains.
//
// With zones of 3, 2 and 1 pods the ranks are 4.83 3.22 1.61, 3.22 1.61 and 1.61: to remove three,
// two go from the first zone and one from the second.
func SpreadRanks(pods, others []podstate.State, constraints []SpreadConstraint, nodeLabels func(node string) map[string]string) []float64 {
	all := slices.Concat(pods, others)
	order := before(ForDeletion(pods, SameNodeRanks(pods, others)), len(all)) // inside a domain, pods are spread over its nodes
	ranks := make([]float64, len(all))
	for _, c := range constraints {
		split := domains(order, c.domain(all, nodeLabels))
		weight := math.Log(float64(len(split) + 2))
		for _, domain := range split {
			for i, index := range domain {
				ranks[index] += float64(len(domain)-i) * weight
			}
		}
	}
	return ranks[:len(pods)]
}

func (c SpreadConstraint) domain(pods []podstate.State, nodeLabels func(node string) map[string]string) func(int) (string, bool) {
	known := map[string]map[string]string{}
	return func(i int) (string, bool) {
		node := pods[i].Pod.Spec.NodeName
		if node == "" {
			return "", false
		}
		labels, ok := known[node]
		if !ok {
			labels = nodeLabels(node)
			known[node] = labels
		}
		value, ok := labels[c.TopologyKey]
		return value, ok && (len(c.LimitedValues) == 0 || slices.Contains(c.LimitedValues, value))
	}
}

// domains splits the indexes by the domain that the function returns and keeps their order. Indexes without a domain
// are left out.
func domains(order []int, of func(index int) (string, bool)) map[string][]int {
	split := map[string][]int{}
	for _, index := range order {
		if name, ok := of(index); ok {
			split[name] = append(split[name], index)
		}
	}
	return split
}
