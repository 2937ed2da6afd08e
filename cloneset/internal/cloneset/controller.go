package cloneset

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/frame/engine"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// Reconciler brings CloneSets to what their specs want. It holds no state that the cluster does not
// hold; what it remembers only saves work.
type Reconciler struct {
	*engine.Engine
	// Gates are the feature gates of plans.
	Gates plan.Gates
}

// Reconcile runs one pass over the CloneSet of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

// pass reads the world of one CloneSet and thinks.
func (r *Reconciler) pass(ctx context.Context, name types.NamespacedName) (engine.Pass, error) {
	snap, err := r.snapshot(ctx, name)
	if err != nil {
		return engine.Pass{}, err
	}
	todo := plan.Compute(snap)
	pass := engine.Pass{
		Workload: snap.Set, Plan: todo.Plan, Err: todo.Err, Pulls: todo.Pulls,
		Status: func(done action.Result) client.Object {
			after := snap.Set.DeepCopy()
			after.Status = plan.Status(snap, todo, done)
			return after
		},
	}
	if update := snap.Chosen.Update; update != nil {
		pass.Update = update.Name
	}
	return pass, nil
}
