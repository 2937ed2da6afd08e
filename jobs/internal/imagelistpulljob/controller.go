package imagelistpulljob

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/imagelistpulljob/plan"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "imagelistpulljob"

// workers is how many jobs are reconciled at a time by default.
const workers = 3

// reconciler reconciles ImageListPullJobs. It holds no state that the cluster does not hold.
type reconciler struct{ *pass.Controller }

// Reconcile runs one pass over a job.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	job, err := fastclient.Get[v1beta1.ImageListPullJob](ctx, r.Reader, key)
	if err != nil {
		return pass.Pass{}, fmt.Errorf("read image list pull job %s: %w", key, err)
	}
	seen, err := r.snapshot(ctx, job)
	if err != nil {
		return pass.Pass{}, err
	}
	todo := plan.Compute(seen)
	return pass.Pass{
		Object: job,
		Plan:   todo.Plan,
		Err:    todo.Err,
		Status: func(done action.Failures) client.Object {
			status := todo.Status(done)
			if status == nil {
				return nil
			}
			after := job.DeepCopy()
			after.Status = *status
			return after
		},
	}, nil
}
