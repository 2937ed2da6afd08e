package whatif

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/frame"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/simulation/rehearse"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset"
	"github.com/flotilla-project/flotilla/daemonset/internal/daemonset/plan"
	"github.com/flotilla-project/flotilla/daemonset/internal/featuregates"
)

// Kind returns DaemonSet as a kind that an operator with these feature gates plays. They are written as in --feature-gates; empty
// means their defaults. The error names a feature gate that is unknown or has a bad value.
func Kind(gates string) (rehearse.Kind, error) {
	enabled, _, err := features.Parse(features.Source{Flag: gates, Gates: featuregates.All()})
	if err != nil {
		return rehearse.Kind{}, err
	}
	return rehearse.Kind{
		New: func() action.Object { return &v1beta1.DaemonSet{} },
		Planner: func(w *cluster.World, set types.NamespacedName) operator.Planner {
			return planner(w, set, enabled)
		},
		Warnings: func(old, edited action.Object) []string {
			return plan.Forecast(old.(*v1beta1.DaemonSet), edited.(*v1beta1.DaemonSet), frame.InPlaceOn(enabled)).Warnings()
		},
	}, nil
}

// Planner returns the planner of the DaemonSet of that name in the world. Its settings are those of an operator without flags on
// the newest Kubernetes. It reads and plans as the operator does, and also what it remembers between passes is the same.
func Planner(w *cluster.World, set types.NamespacedName) operator.Planner {
	return planner(w, set, features.Defaults(featuregates.All()...))
}

func planner(w *cluster.World, set types.NamespacedName, enabled features.Set) operator.Planner {
	return rehearse.New(w, rehearse.Options[v1beta1.DaemonSet, *v1beta1.DaemonSet, plan.Snapshot]{
		Set: set,
		Workload: func() *frame.Workload[v1beta1.DaemonSet, *v1beta1.DaemonSet, plan.Snapshot] {
			return daemonset.Workload(daemonset.FeatureGates(enabled, frame.InPlaceOn(enabled)))
		},
	})
}
