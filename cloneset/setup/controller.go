package setup

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/engine"
	"github.com/flotilla-project/flotilla/core/fastclient"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// Options change how the controller works.
type Options struct {
	// Gates are the feature gates of plans.
	Gates plan.Gates
	// Workers is how many sets are reconciled at a time; 0 means DefaultWorkers.
	Workers int
	// Reader says how cached objects are handed out.
	Reader fastclient.Options
	// LeaderVersion returns the resourceVersion of the write that made this process leader; nil
	// without leader election.
	LeaderVersion func(context.Context) (string, error)
	// Namespace restricts the controller to one namespace; empty means all.
	Namespace string
	// UserAgent is the name under which the controller writes.
	UserAgent string
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
		Settings: engine.Settings{
			Reader: o.Reader, LeaderVersion: o.LeaderVersion, Namespace: o.Namespace, UserAgent: o.UserAgent,
		},
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
