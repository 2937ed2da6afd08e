package engine

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/predownload"
)

// Pass is what one look at a workload found and wants.
type Pass struct {
	// Workload is the object as it was read.
	Workload client.Object
	// Plan is what is to be done.
	Plan action.Plan
	// Err says why the spec cannot be followed. Only an edit helps: the pass is not repeated for it.
	Err error
	// Pulls is what pulling images ahead wants for the revision Update; Update is empty where there is none.
	Update string
	Pulls  predownload.Wish
	// Status is the workload with its next status, when that has become of the plan.
	Status func(done action.Result) client.Object
}

// Handle runs one pass over the workload of a request, as base.Handle does. look thinks, too.
func (e *Engine) Handle(ctx context.Context, req ctrl.Request, look func(context.Context, types.NamespacedName) (Pass, error)) (ctrl.Result, error) {
	return base.Handle(ctx, e, req, look, e.Run)
}

// Run writes what the pass wants, then the status, tells users, and pulls images ahead. The result says
// when to look at the workload again, should nothing happen before.
func (e *Engine) Run(ctx context.Context, p Pass) (ctrl.Result, error) {
	done := e.Execute(ctx, p.Workload, p.Plan)
	e.follow(client.ObjectKeyFromObject(p.Workload), done.Results)
	wrote, again, statusErr := e.PatchStatus(ctx, p.Workload, p.Status(done.Result().With(p.Plan.Held)))
	e.Events.Tell(p.Workload, p.Plan.NoticesOnce(wrote || again == 0 && statusErr == nil), &done)
	if p.Update != "" {
		p.Plan.Wake(e.PullJobs.Run(ctx, p.Workload, p.Update, p.Pulls))
	}
	p.Plan.Wake(done.RetryAfter)
	p.Plan.Wake(again)
	return p.end(ctx, errors.Join(done.Err, statusErr))
}

// end is what the queue is told. A spec that cannot be followed is an error for good, unless what keeps
// running pods in order wants another look.
func (p *Pass) end(ctx context.Context, err error) (ctrl.Result, error) {
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case p.Err != nil && p.Plan.WakeAfter == 0:
		return ctrl.Result{}, reconcile.TerminalError(p.Err)
	case p.Err != nil:
		log.FromContext(ctx).Error(p.Err, "The spec cannot be followed")
	}
	return ctrl.Result{RequeueAfter: p.Plan.WakeAfter}, nil
}
