package frame

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
)

// reconciler reconciles sets.
type reconciler[T any, P fastclient.Object[T], S any] struct {
	*Workload[T, P, S]
	controller *Controller
}

// Reconcile runs one pass over the set of the request.
func (r *reconciler[T, P, S]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.controller.Handle(ctx, req, func(ctx context.Context, name types.NamespacedName) (pass.Pass, error) {
		p, err := r.Look(ctx, r.controller, name)
		return p.Pass, err
	})
}
