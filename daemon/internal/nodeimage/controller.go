package nodeimage

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// reconciler runs the passes over NodeImages.
type reconciler struct {
	*pass.Controller
	passes *passes
}

func newReconciler(b *pass.Controller, creationDelay time.Duration) *reconciler {
	return &reconciler{b, newPasses(sources{
		Reader:        b.Reader,
		Live:          b.Live,
		Clock:         b.Clock,
		CreationDelay: creationDelay,
		Refusals:      func(of client.Object, now time.Time) action.Refusals { return b.KnownRefusals(of, nil, 0, now) },
	})}
}

// Reconcile runs one pass over the NodeImage of the request's node.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.passes.Look)
}
