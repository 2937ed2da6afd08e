package cloneset

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/events"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/freshness"
	"github.com/flotilla-project/flotilla/core/podtemplate"
	"github.com/flotilla-project/flotilla/core/status"

	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// Config is what a Reconciler works with.
type Config struct {
	// Live reads from the server.
	Live client.Reader
	// Reader reads from the cache.
	Reader *fastclient.Reader
	// Freshness knows the writes that the cache has not shown yet.
	Freshness *freshness.Gate
	// Executor writes what plans want.
	Executor *execute.Executor
	// Status writes statuses.
	Status status.Writer
	// Events tells users.
	Events *events.Recorder
	// Templates asks the server for the defaults of pod templates.
	Templates *podtemplate.Checker
	// Discovery and Cache look for image pull jobs. With gate PreDownload off they are not used.
	Discovery Discovery
	Cache     cache.Cache
	// Clock tells the time.
	Clock clock.PassiveClock
	// Gates are the feature gates of plans.
	Gates plan.Gates
}

// Reconciler brings CloneSets to what their specs want. It holds no state that the cluster does not
// hold; what it remembers only saves work.
type Reconciler struct {
	Config
	history *history
	orphans *orphans
	pulls   *pullJobs
}

// New makes a reconciler.
func New(c Config) *Reconciler {
	return &Reconciler{
		Config:  c,
		history: &history{reader: c.Reader, templates: c.Templates, known: map[types.NamespacedName]remembered{}},
		orphans: &orphans{live: c.Live, asked: map[types.NamespacedName]question{}},
		pulls:   &pullJobs{discovery: c.Discovery, cache: c.Cache, clock: c.Clock, recent: map[types.NamespacedName]pullAttempt{}},
	}
}

// Reconcile runs one pass over the CloneSet of the request.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if wait := r.Freshness.Wait(req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	snap, err := r.snapshot(ctx, req.NamespacedName)
	if apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	todo := plan.Compute(snap)
	if !todo.Empty() {
		log.FromContext(ctx).V(2).Info("pass", "plan", todo.String())
	}
	done := r.Executor.Run(ctx, snap.Set, todo.Steps)
	again, statusErr := r.writeStatus(ctx, snap, todo, done)
	r.Events.Tell(snap.Set, todo.Notices, &done)
	todo.Wake(r.pullAhead(ctx, snap, todo))
	if err := errors.Join(done.Err, statusErr); err != nil {
		return ctrl.Result{}, err
	}
	if todo.Err != nil {
		return ctrl.Result{}, reconcile.TerminalError(todo.Err)
	}
	todo.Wake(done.RetryAfter)
	todo.Wake(again)
	return ctrl.Result{RequeueAfter: todo.WakeAfter}, nil
}

func (r *Reconciler) forget(name types.NamespacedName) {
	r.Freshness.Forget(name)
	r.history.forget(name)
	r.orphans.forget(name)
	r.pulls.forget(name)
}
