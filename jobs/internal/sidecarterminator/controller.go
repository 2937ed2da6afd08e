package sidecarterminator

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
)

// reconciler runs the passes over pods.
type reconciler struct {
	*pass.Controller
	passes *passes
	// over is nil where requests are cached, otherwise it reports whether they are by now.
	over func() bool
}

// Reconcile runs one pass over a pod.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.over != nil && r.over() {
		return ctrl.Result{}, nil
	}
	return r.Handle(ctx, req, r.passes.Look)
}
