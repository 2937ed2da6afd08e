package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/predownload"
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

// Handle runs one pass over the workload of a request, unless the cache has yet to show what was written
// for it. look reads the workload and thinks; its error satisfies IsNotFound only when the workload itself
// is gone.
func (e *Engine) Handle(ctx context.Context, req ctrl.Request, look func(context.Context, types.NamespacedName) (Pass, error)) (ctrl.Result, error) {
	if wait := e.Freshness.Wait(req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	pass, err := look(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		e.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return e.Run(ctx, pass)
}

// Run writes what the pass wants, then the status, tells users, and pulls images ahead. The result says
// when to look at the workload again, should nothing happen before.
func (e *Engine) Run(ctx context.Context, p Pass) (ctrl.Result, error) {
	if !p.Plan.Empty() {
		log.FromContext(ctx).V(2).Info("pass", "plan", p.Plan.String())
	}
	done := e.Executor.Run(ctx, p.Workload, p.Plan.Steps)
	again, statusErr := e.writeStatus(ctx, p.Workload, p.Status(done.Result()))
	e.Events.Tell(p.Workload, p.Plan.Notices, &done)
	if p.Update != "" {
		p.Plan.Wake(e.PullJobs.Run(ctx, p.Workload, p.Update, p.Pulls))
	}
	if err := errors.Join(done.Err, statusErr); err != nil {
		return ctrl.Result{}, err
	}
	if p.Err != nil {
		return ctrl.Result{}, reconcile.TerminalError(p.Err)
	}
	p.Plan.Wake(done.RetryAfter)
	p.Plan.Wake(again)
	return ctrl.Result{RequeueAfter: p.Plan.WakeAfter}, nil
}

// writeStatus patches the status when it changed. A refused patch met another version of the workload; the
// returned time is when to look again at the latest, should no event tell of that version.
func (e *Engine) writeStatus(ctx context.Context, before, after client.Object) (again time.Duration, err error) {
	wrote, err := e.Status.Patch(ctx, before, after)
	if err != nil {
		return 0, fmt.Errorf("patch status: %w", err)
	}
	if !wrote && !equality.Semantic.DeepEqual(before, after) {
		return execute.StaleRetry, nil
	}
	return 0, nil
}
