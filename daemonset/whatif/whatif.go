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

// Kind returns DaemonSet as a kind that can be played.
func Kind() rehearse.Kind {
	return rehearse.Kind{
		New:     func() action.Object { return &v1beta1.DaemonSet{} },
		Planner: Planner,
		Warnings: func(old, edited action.Object) []string {
			return plan.Forecast(old.(*v1beta1.DaemonSet), edited.(*v1beta1.DaemonSet), frame.InPlaceOn(enabled())).Warnings()
		},
	}
}

// Planner returns the planner of the DaemonSet of that name in the world. Its settings are those of an operator without flags on
// the newest Kubernetes. It reads and plans as the operator does, and also what it remembers between passes is the same.
func Planner(w *cluster.World, set types.NamespacedName) operator.Planner {
	return rehearse.New(w, rehearse.Options[v1beta1.DaemonSet, *v1beta1.DaemonSet, plan.Snapshot]{
		Set: set,
		Workload: func() *frame.Workload[v1beta1.DaemonSet, *v1beta1.DaemonSet, plan.Snapshot] {
			return daemonset.Workload(gates())
		},
	})
}

func gates() plan.FeatureGates { return daemonset.FeatureGates(enabled(), frame.InPlaceOn(enabled())) }

func enabled() features.Set { return features.Defaults(featuregates.All()...) }
