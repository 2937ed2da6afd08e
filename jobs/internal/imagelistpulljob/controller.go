package imagelistpulljob

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

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

// SetUp adds the controller to the manager: events of a job wake it, and events of its ImagePullJobs that change the
// job's status. The index of owners of ImagePullJobs must have been added.
func SetUp(ctx context.Context, mgr ctrl.Manager, o pass.Settings) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings: o, Controller: ControllerName, EventSource: "imagelistpulljob-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.ImageListPullJob{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&v1beta1.ImagePullJob{}:     fastclient.Within(o.Namespace, cache.ByObject{}),
		},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.ImageListPullJob{}).
		Owns(&v1beta1.ImagePullJob{}, builder.WithPredicates(childChanges())).
		WithOptions(o.Options(workers)).
		Complete(&reconciler{b})
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}

// childChanges selects the events of ImagePullJobs that matter to their parents.
func childChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*v1beta1.ImagePullJob)
		after, okAfter := e.ObjectNew.(*v1beta1.ImagePullJob)
		if !okBefore || !okAfter {
			return true
		}
		a, b := before.Status, after.Status
		a.Message, b.Message = "", ""
		return before.Generation != after.Generation || !equality.Semantic.DeepEqual(a, b) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
	}}
}

// Reconcile runs one pass over a job.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	job, err := fastclient.Get[v1beta1.ImageListPullJob](ctx, r.Reader, key)
	if err != nil {
		return pass.Pass{}, fmt.Errorf("read image list pull job %s: %w", key, err)
	}
	s := plan.Snapshot{Job: job, Now: r.Clock.Now()}
	if s.Children, err = fastclient.Controlled[v1beta1.ImagePullJob](ctx, r.Reader, job); err != nil {
		return pass.Pass{}, fmt.Errorf("read the image pull jobs of a list: %w", err)
	}
	s.Refusals = r.KnownRefusals(job, nil, 0, s.Now)
	todo := plan.Compute(s)
	return pass.Pass{Object: job, Plan: todo.Plan, Err: todo.Err, Status: func(done action.Failures) client.Object {
		status := todo.Status(done)
		if status == nil {
			return nil
		}
		after := job.DeepCopy()
		after.Status = *status
		return after
	}}, nil
}
