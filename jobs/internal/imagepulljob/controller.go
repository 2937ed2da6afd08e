package imagepulljob

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// reconciler runs the passes over ImagePullJobs.
type reconciler struct {
	*pass.Controller
	passes *passes
	// over is nil where the copies of pull secrets are cached, otherwise it reports whether they are by now.
	over func() bool
}

// Reconcile runs one pass over a job.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.over != nil && r.over() {
		return ctrl.Result{}, nil
	}
	return r.Handle(ctx, req, r.passes.Look)
}

// waiting reconciles ImagePullJobs while there is an obstacle.
type waiting struct {
	*pass.Controller
	why  func() plan.Obstacle
	over func() bool
}

// Reconcile runs one pass over a job.
func (w *waiting) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if w.over() {
		return ctrl.Result{}, nil
	}
	return w.Handle(ctx, req, func(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
		job, err := fastclient.Get[v1beta1.ImagePullJob](ctx, w.Reader, key)
		if err != nil {
			return pass.Pass{}, fmt.Errorf("read image pull job %s: %w", key, err)
		}
		now := w.Clock.Now()
		todo := plan.Waiting(job, now, w.KnownRefusals(job, nil, 0, now), w.why())
		return passOf(job, &todo), nil
	})
}

// Reconcile runs one pass over a copy.
func (r *copyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.passes.Look)
}
