package ordering

import (
	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// UpdateOptions are the user's settings for the order of an update.
type UpdateOptions struct {
	// Priority is updateStrategy.priorityStrategy; nil orders nothing.
	Priority *workload.UpdatePriorityStrategy
	// Scatter is updateStrategy.scatterStrategy; empty scatters nothing.
	Scatter workload.UpdateScatterStrategy
	// UnkeyedFirst puts pods with none of the keys of an orderPriority first. The documented rule,
	// and the default, is last.
	UnkeyedFirst bool
}

// ForUpdate is the order in which the waiting pods are updated. all are the pods of the workload and
// waiting indexes into them; the returned order has the same indexes.
//
// The least valuable pods come first: not assigned to a node, Pending before Unknown before Running,
// not ready, not available, ready for less time, more restarts, newer, by name. Above that stands the
// priority, so that within one priority unavailable pods come first; then pods are scattered; and
// pods in PreparingUpdate, which have begun their update, come before all others.
func ForUpdate(all []podstate.State, waiting []int, o UpdateOptions) []int {
	order := sorted(sortKeys(all, waiting), (*sortKey).forUpdate)
	order = ByPriority(all, order, o)
	order = scatter(all, order, o.Scatter)
	return begunFirst(all, order)
}

func begunFirst(pods []podstate.State, order []int) []int {
	var begun, others []int
	for _, index := range order {
		if pods[index].Lifecycle == contract.LifecyclePreparingUpdate {
			begun = append(begun, index)
		} else {
			others = append(others, index)
		}
	}
	return append(begun, others...)
}
