package recreate

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// reconciler does the manager's part of requests.
type reconciler struct {
	*pass.Controller
	memory *plan.Memory
	// clock is the name of the machine's clock.
	clock string
}

// Reconcile runs one pass over the request that the key names.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

// pass reads one request and its pod, and plans.
func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	snap, err := r.snapshot(ctx, key)
	if err != nil {
		return pass.Pass{}, err
	}
	todo := plan.Compute(snap)
	return pass.Pass{
		Object: snap.Request,
		Plan:   todo.Plan,
		Status: func(done action.Failures) client.Object {
			after := snap.Request.DeepCopy()
			after.Status = todo.Status(done)
			return after
		},
	}, nil
}
