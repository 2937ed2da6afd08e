package operator

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// View is what an operator sees of the world when it plans.
type View struct {
	*cluster.View

	operator *Operator // nil for a view of nobody
}

// Tracker returns what the operator that looks at the world remembers of refused writes.
func (v *View) Tracker() *refusals.Tracker {
	if v.operator == nil {
		return &refusals.Tracker{}
	}
	return v.operator.memory
}

// PlanFor says for which workload the operator that looks at the world plans.
func (v *View) PlanFor(workload action.Object) {
	if v.operator != nil {
		v.operator.workload = workload
	}
}

// Refusals returns what the server has refused to the operator that looks at the world, for its workload.
func (v *View) Refusals(workload action.Object, pods []*corev1.Pod, minReadySeconds int32) action.Refusals {
	v.PlanFor(workload)
	return v.Tracker().For(memory.KeyOf(workload), refusals.Observation{
		Now:        v.Now(),
		Generation: workload.GetGeneration(),
		Available:  func() int { return podstate.CountAvailable(pods, v.Now(), minReadySeconds) },
	})
}
