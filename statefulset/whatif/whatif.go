package whatif

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/featuregates"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// Kind returns StatefulSet as a kind that an operator with these feature gates plays. They are written as in --feature-gates; empty
// means their defaults. The error names a feature gate that is unknown or has a bad value.
func Kind(gates string) (rehearse.Kind, error) {
	enabled, _, err := features.Parse(features.Source{Flag: gates, Gates: featuregates.All()})
	if err != nil {
		return rehearse.Kind{}, err
	}
	return rehearse.Kind{
		New: func() action.Object { return &v1beta1.StatefulSet{} },
		Planner: func(w *cluster.World, set types.NamespacedName) operator.Planner {
			return planner(w, set, enabled)
		},
		Warnings: func(old, edited action.Object) []string {
			return plan.Forecast(old.(*v1beta1.StatefulSet), edited.(*v1beta1.StatefulSet), frame.InPlaceOn(enabled)).Warnings()
		},
	}, nil
}

// Planner returns the planner of the StatefulSet of that name in the world. Its settings are those of an operator without flags on
// the newest Kubernetes. It reads and plans as the operator does, and also what it remembers between passes is the same.
func Planner(w *cluster.World, set types.NamespacedName) operator.Planner {
	return planner(w, set, features.Defaults(featuregates.All()...))
}

func planner(w *cluster.World, set types.NamespacedName, enabled features.Set) operator.Planner {
	return rehearse.New(w, rehearse.Options[v1beta1.StatefulSet, *v1beta1.StatefulSet, plan.Snapshot]{
		Set: set,
		Workload: func() *frame.Workload[v1beta1.StatefulSet, *v1beta1.StatefulSet, plan.Snapshot] {
			return statefulset.Workload(statefulset.FeatureGates(enabled, frame.InPlaceOn(enabled)))
		},
	})
}
