package launch

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/daemon/internal/launch/plan"
)

// reconciler starts the containers of pods in order. It holds no state.
type reconciler struct{ *pass.Controller }

// Reconcile runs one pass over the pod of the request.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

// pass reads one pod and its ConfigMap, and plans.
func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	snap, err := r.snapshot(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	return pass.Pass{Object: snap.Pod, Plan: plan.Compute(snap)}, nil
}
