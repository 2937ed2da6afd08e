package imagepulljob

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagepulljob/plan"
)

// reconciler reconciles ImagePullJobs. It holds no state that the cluster does not hold; its memory only saves
// requests.
type reconciler struct {
	*base.Controller
	ttl       time.Duration
	namespace string // of the copies of pull secrets
	secrets   *sources
	pods      *podLists
	ready     *readiness
	vault     *vault
	// over is nil where the copies of pull secrets are cached, otherwise it reports whether they are by now.
	over func() bool
}

// Reconcile runs one pass over a job.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.over != nil && r.over() {
		return ctrl.Result{}, nil
	}
	return r.Handle(ctx, req, r.pass)
}

func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
	snap, err := r.snapshot(ctx, key)
	if err != nil {
		return base.Pass{}, err
	}
	snap.Refusals = r.KnownRefusals(snap.Job, nil, 0, snap.Now)
	todo := plan.Compute(snap)
	if status := todo.Status(action.Failures{}); usesPods(snap.Job) && status != nil && status.CompletionTime == nil {
		todo.RequeueWithin(podRecheck)
	}
	return passOf(snap.Job, &todo), nil
}

// passOf returns the pass that carries out a plan.
func passOf(job *v1beta1.ImagePullJob, todo *plan.Plan) base.Pass {
	return base.Pass{Object: job, Plan: todo.Plan, Err: todo.Err, Status: func(done action.Failures) client.Object {
		status := todo.Status(done)
		if status == nil {
			return nil
		}
		after := job.DeepCopy()
		after.Status = *status
		return after
	}}
}

// waiting reconciles ImagePullJobs while there is an obstacle.
type waiting struct {
	*base.Controller
	why  func() plan.Obstacle
	over func() bool
}

// Reconcile runs one pass over a job.
func (w *waiting) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if w.over() {
		return ctrl.Result{}, nil
	}
	return w.Handle(ctx, req, func(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
		job, err := fastclient.Get[v1beta1.ImagePullJob](ctx, w.Reader, key)
		if err != nil {
			return base.Pass{}, fmt.Errorf("read image pull job %s: %w", key, err)
		}
		now := w.Clock.Now()
		todo := plan.Waiting(job, now, w.KnownRefusals(job, nil, 0, now), w.why())
		return passOf(job, &todo), nil
	})
}
