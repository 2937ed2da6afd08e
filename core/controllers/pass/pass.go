package pass

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/later"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
)

// goOn is the pause before a pass continues one that used up its time. It is only long enough for the queue to take other
// objects first.
const goOn = time.Millisecond

// Pass is one run of a controller over one object: the objects that it read and its plan.
type Pass struct {
	// Object is the object as it was read.
	Object client.Object
	// Plan has the actions to execute. If it is not admitted yet, Run admits it.
	Plan action.Plan
	// Err is why the spec cannot be followed. The pass is not repeated for it, because only an edit helps.
	Err error
	// Status returns the object with its next status, given the outcome of the plan. If it is nil or returns nil, the
	// status stays as it is.
	Status func(done action.Failures) client.Object
	// Renew, unless nil, returns the object with its next status, and the notices, for a newer version of the object:
	// another writer of that status was first. Nil means that all must be read again. It must be quick, since other
	// clients continue to write.
	Renew func(newer client.Object) (client.Object, []action.Notice)
	// Through, unless nil, writes the status by the queue of its writers in this process, in place of the controller's
	// own client. It needs Renew. It returns the object as it was written, nil if the status was the same; its errors are
	// the errors of ledger.Ledger.
	Through func(ctx context.Context, object client.Object, next func(newest client.Object) client.Object) (client.Object, error)
	// OtherNotices are notices about other objects.
	OtherNotices []Notices

	// Do, unless nil, carries out the pass: execute executes Plan, and Do may act elsewhere before and after that, such as
	// on this machine. It returns the outcome of Plan.
	Do func(ctx context.Context, execute func() progress.Result) progress.Result
	// SteadyPace is true if errors of writes do not put off the next pass for longer and longer. They are logged, and the
	// pass is repeated when the writes may be tried again.
	SteadyPace bool
	// After, unless nil, runs at the end, with whether the pass has written the status; its failure has no consequences for
	// the rest of the pass. It returns after how long to look at the object again at the latest, 0 for never.
	After func(ctx context.Context, reported bool) time.Duration

	took time.Duration // to read and to plan
}

// Notices are events on an object that is not the object of the pass.
type Notices struct {
	// Object is such an object or, as a *corev1.ObjectReference, names it.
	Object runtime.Object
	Events []action.Notice
}

// Handle runs one pass over the object of a request, unless the last pass is too recent for its cost, or the cache does
// not show the writes for the object yet. look reads the object and all that belongs to it, and plans; its error
// satisfies IsNotFound only when the object itself is gone. An error that later.Wait knows is no failure: the object is
// looked at again when its cause is.
func (c *Controller) Handle(
	ctx context.Context, req ctrl.Request, look func(context.Context, types.NamespacedName) (Pass, error),
) (ctrl.Result, error) {
	if rest := c.rests.left(req.NamespacedName, c.Clock.Now()); rest > 0 {
		return ctrl.Result{RequeueAfter: rest}, nil
	}
	if wait := c.Freshness.Wait(ctx, req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	began := c.Clock.Now()
	p, err := look(ctx, req.NamespacedName)
	p.took = c.Clock.Since(began)
	if apierrors.IsNotFound(err) {
		c.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if wait, ok := later.Wait(err, c.Clock.Now()); ok {
		log.FromContext(ctx).V(1).Info("Cannot read all that belongs to the object now", "after", wait.String(), "error", err.Error())
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return c.Run(ctx, p)
}

// Run carries out the pass: it executes the plan, then writes the status and sends events. The result shows when to look at
// the object again if no event arrives earlier.
func (c *Controller) Run(ctx context.Context, p Pass) (ctrl.Result, error) {
	p.Plan = action.Admit(p.Plan)
	done := c.do(ctx, &p)
	if ctx.Err() != nil {
		c.recordEvents(&p, &done, false)
		return ctrl.Result{}, errors.Join(done.Err, fmt.Errorf("end the pass: %w", ctx.Err()))
	}
	status := c.report(ctx, &p, &done)
	c.recordEvents(&p, &done, status.shown())
	if p.After != nil {
		p.Plan.RequeueWithin(p.After(ctx, status.wrote))
	}
	p.Plan.RequeueWithin(done.RetryAfter)
	if done.Spent {
		p.Plan.RequeueWithin(goOn)
	} else {
		c.rests.begin(client.ObjectKeyFromObject(p.Object), c.Clock.Now(), p.took)
	}
	p.Plan.RequeueWithin(status.again)
	return p.end(ctx, errors.Join(done.Err, status.err))
}

// do carries out the actions of the pass.
func (c *Controller) do(ctx context.Context, p *Pass) progress.Result {
	execute := func() progress.Result { return c.Execute(ctx, p.Object, p.Plan) }
	var done progress.Result
	if p.Do != nil {
		done = p.Do(ctx, execute)
	} else {
		done = execute()
	}
	if p.SteadyPace && done.Err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(done.Err, "Reconcile failed", "again", done.RetryAfter)
		done.Err = nil
	}
	return done
}

// report writes the status. A status that was computed from an older version of the object is not sent: the event of the
// newer version starts the next pass.
func (c *Controller) report(ctx context.Context, p *Pass, done *progress.Result) statusReport {
	if p.Status == nil || outdated(p.Object, done) || c.Executor.Edited(p.Object) {
		return statusReport{}
	}
	after := p.Status(done.Failures().WithDeferred(p.Plan.Deferred))
	if after == nil {
		return statusReport{}
	}
	return c.reportStatus(ctx, p, after)
}

// outdated reports whether the object has changed since it was read: by an action of the plan, or by others before one.
func outdated(object client.Object, done *progress.Result) bool {
	for i := range done.Outcomes {
		r := &done.Outcomes[i]
		if r.Action.Object.GetUID() == object.GetUID() && object.GetUID() != "" && (r.State == progress.Done || r.State == progress.Stale) {
			return true
		}
	}
	return false
}

// recordEvents sends the events of the pass. Events of the status are sent only if the object has that status.
func (c *Controller) recordEvents(p *Pass, done *progress.Result, reported bool) {
	c.Events.Record(p.Object, p.Plan.NoticesToRecord(reported), done)
	for _, n := range p.OtherNotices {
		elsewhere := action.Plan{Notices: n.Events}
		c.Events.Record(n.Object, elsewhere.NoticesToRecord(reported), &progress.Result{})
	}
}

// end returns the result and the error for the queue. A spec that cannot be followed is a terminal error, unless the
// plan, which keeps running pods in order, asks for another look.
func (p *Pass) end(ctx context.Context, err error) (ctrl.Result, error) {
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case p.Err != nil && p.Plan.RequeueAfter == 0:
		return ctrl.Result{}, reconcile.TerminalError(p.Err)
	case p.Err != nil:
		log.FromContext(ctx).Error(p.Err, "The spec is invalid")
	}
	return ctrl.Result{RequeueAfter: p.Plan.RequeueAfter}, nil
}
