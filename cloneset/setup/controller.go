package setup

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/frame/engine"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// Options change how the controller works; 0 workers mean DefaultWorkers.
type Options struct {
	base.Settings
	// Gates are the feature gates of plans.
	Gates plan.Gates
}

// DefaultWorkers is how many sets are reconciled at a time unless Options say otherwise.
const DefaultWorkers = 3

// Controller adds the CloneSet controller to the manager, whose cache must be made with Cache.
func Controller(ctx context.Context, mgr ctrl.Manager, o Options) error {
	cached, err := Cache(o.Namespace)
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, mgr, engine.Options{
		Controller: cloneset.ControllerName, EventSource: "cloneset-controller",
		Kind: &v1beta1.CloneSet{}, Cache: cached, PodLabel: contract.InstanceIDLabel,
		Settings: o.Settings,
	})
	if err != nil {
		return err
	}
	workers := o.Workers
	if workers == 0 {
		workers = DefaultWorkers
	}
	return (&cloneset.Reconciler{Engine: e, Gates: o.Gates}).SetUp(mgr, workers)
}
