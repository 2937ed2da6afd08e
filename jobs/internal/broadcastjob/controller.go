package broadcastjob

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "broadcastjob"

// workers is how many jobs are reconciled at a time by default.
const workers = 3

func kind() schema.GroupVersionKind { return v1beta1.GroupVersion.WithKind(v1beta1.BroadcastJobKind) }

// reconciler runs the passes over BroadcastJobs.
type reconciler struct {
	*pass.Controller
	passes *passes
}

// Reconcile runs one pass over a job.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.passes.Look)
}
