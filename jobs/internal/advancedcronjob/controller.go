package advancedcronjob

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"

	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/plan"
)

// reconciler reconciles AdvancedCronJobs with one kind of jobs. It holds no state that the cluster does not hold.
type reconciler struct {
	*base.Controller
	kind *kind
	// over is nil where jobs of the kind are cached, otherwise it reports whether they are by now; gate returns why
	// not.
	over func() bool
	gate *optional.Gate
}

// Reconcile runs one pass over an AdvancedCronJob.
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
	todo := plan.Compute(snap)
	var made []plan.Child
	return base.Pass{
		Object: snap.Cron, Plan: todo.Plan, Err: todo.Err,
		Executed: func(done *progress.Result) {
			made = r.made(done)
			if done.Err != nil && ctx.Err() == nil {
				// An error would put off the next pass, and with it the next run, for longer and longer.
				log.FromContext(ctx).Error(done.Err, "Reconcile failed", "again", done.RetryAfter)
				done.Err = nil
			}
		},
		Status: func(done action.Failures) client.Object {
			status := todo.Status(made, done)
			if status == nil {
				return nil
			}
			after := snap.Cron.DeepCopy()
			after.Status = *status
			return after
		},
	}, nil
}

// made returns the jobs that a plan has created.
func (r *reconciler) made(done *progress.Result) (jobs []plan.Child) {
	for i := range done.Outcomes {
		o := &done.Outcomes[i]
		if o.State == progress.Done && o.Action.Verb == action.Create {
			jobs = append(jobs, r.kind.child(o.Object))
		}
	}
	return jobs
}
