package engine

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/action"
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

// Memory is what a controller remembers of an object: a Base or an Engine.
type Memory interface {
	// Wait is how long to leave the object alone.
	Wait(ctx context.Context, name types.NamespacedName) time.Duration
	// Forget drops what is remembered of an object that is gone.
	Forget(name types.NamespacedName)
}

// Handle runs one pass over the object of a request, unless the cache has yet to show what was written for
// it. look reads the world of the object, and run acts on what it saw; the error of look satisfies IsNotFound
// only when the object itself is gone.
func Handle[W any](
	ctx context.Context, m Memory, req ctrl.Request,
	look func(context.Context, types.NamespacedName) (W, error), run func(context.Context, W) (ctrl.Result, error),
) (ctrl.Result, error) {
	if wait := m.Wait(ctx, req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	world, err := look(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		m.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return run(ctx, world)
}

// Handle runs one pass over the workload of a request, as the function Handle does. look thinks, too.
func (e *Engine) Handle(ctx context.Context, req ctrl.Request, look func(context.Context, types.NamespacedName) (Pass, error)) (ctrl.Result, error) {
	return Handle(ctx, e, req, look, e.Run)
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
