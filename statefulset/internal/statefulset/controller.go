package statefulset

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	if !todo.Empty() {
		log.FromContext(ctx).V(2).Info("pass", "plan", todo.String())
	}
	done := r.Executor.Run(ctx, snap.Set, todo.Steps)
	again, statusErr := r.writeStatus(ctx, snap, todo, done)
	r.Events.Tell(snap.Set, todo.Notices, &done)
	if snap.Chosen.Update != nil {
		todo.Wake(r.PullJobs.Run(ctx, snap.Set, snap.Chosen.Update.Name, todo.Pulls))
	}
	if err := errors.Join(done.Err, statusErr); err != nil {
		return ctrl.Result{}, err
	}
	if todo.Err != nil {
		return ctrl.Result{}, reconcile.TerminalError(todo.Err)
	}
	todo.Wake(done.RetryAfter)
	todo.Wake(again)
	return ctrl.Result{RequeueAfter: todo.WakeAfter}, nil
}
