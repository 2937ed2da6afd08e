package setup

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/frame/engine"

	"github.com/flotilla-project/flotilla/statefulset/api/v1beta1"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset"
	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// Options change how the controller works; 0 workers mean DefaultWorkers.
type Options struct {
	base.Settings
	// Gates are the feature gates of plans.
	Gates plan.Gates
}

// DefaultWorkers is how many sets are reconciled at a time unless Options say otherwise.
const DefaultWorkers = 3

// Controller adds the StatefulSet controller to the manager, whose cache must be made with Cache.
func Controller(ctx context.Context, mgr ctrl.Manager, o Options) error {
	e, err := engine.New(ctx, mgr, engine.Options{
		Controller: statefulset.ControllerName, EventSource: "statefulset-controller",
		Kind: &v1beta1.StatefulSet{}, Cache: Cache(o.Namespace), PodLabel: podLabel,
		Settings: o.Settings,
	})
	if err != nil {
		return err
	}
	workers := o.Workers
	if workers == 0 {
		workers = DefaultWorkers
	}
	return (&statefulset.Reconciler{Engine: e, Gates: o.Gates}).SetUp(mgr, workers)
}
