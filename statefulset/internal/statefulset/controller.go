package statefulset

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/engine"

	"github.com/flotilla-project/flotilla/statefulset/internal/statefulset/plan"
)

// Reconciler brings StatefulSets to what their specs want. It holds no state that the cluster does not
// hold; what it remembers only saves work.
type Reconciler struct {
	*engine.Engine
	// Gates are the feature gates of plans.
	Gates plan.Gates

	cache cache.Cache // for kinds that few sets need
}

// Reconcile runs one pass over the StatefulSet of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if wait := r.Freshness.Wait(req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	snap, err := r.snapshot(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
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
	if snap.Chosen.Update != nil {
		pass.Update = snap.Chosen.Update.Name
	}
	return r.Run(ctx, pass)
}
