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

// Kind returns StatefulSet as a kind that can be played.
func Kind() rehearse.Kind {
	return rehearse.Kind{
		New:     func() action.Object { return &v1beta1.StatefulSet{} },
		Planner: Planner,
		Warnings: func(old, edited action.Object) []string {
			return plan.Forecast(old.(*v1beta1.StatefulSet), edited.(*v1beta1.StatefulSet), frame.InPlaceOn(enabled())).Warnings()
		},
	}
}

// Planner returns the planner of the StatefulSet of that name in the world. Its settings are those of an operator without flags on
// the newest Kubernetes. It reads and plans as the operator does, and also what it remembers between passes is the same.
func Planner(w *cluster.World, set types.NamespacedName) operator.Planner {
	return rehearse.New(w, rehearse.Options[v1beta1.StatefulSet, *v1beta1.StatefulSet, plan.Snapshot]{
		Set: set,
		Workload: func() *frame.Workload[v1beta1.StatefulSet, *v1beta1.StatefulSet, plan.Snapshot] {
			return statefulset.Workload(gates())
		},
	})
}

func gates() plan.FeatureGates {
	return statefulset.FeatureGates(enabled(), frame.InPlaceOn(enabled()))
}

func enabled() features.Set { return features.Defaults(featuregates.All()...) }
