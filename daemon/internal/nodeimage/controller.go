package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/base"

	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/plan"
)

// reconciler brings NodeImages to what their nodes and owners want. It holds no state that the cluster does
// not hold; what it remembers only saves work.
type reconciler struct {
	*base.Controller
	creationDelay time.Duration
	jobs          *jobs
	secrets       *secrets
	agents        *agents
}

func newReconciler(base *base.Controller, mapper meta.RESTMapper, clock clock.WithTicker, creationDelay time.Duration) *reconciler {
	return &reconciler{
		Controller:    base,
		creationDelay: creationDelay,
		jobs:          &jobs{mapper: mapper, live: base.Live, clock: clock, gone: answers[plan.Job]{age: goneAge}},
		secrets:       &secrets{live: base.Live, clock: clock, known: answers[types.NamespacedName]{age: secretAge}},
		agents:        &agents{since: map[string]time.Time{}},
	}
}

// Reconcile runs one pass over the NodeImage of the request's node.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if wait := r.Wait(ctx, req.NamespacedName); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	snap, err := r.snapshot(ctx, req.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if snap.Image == nil {
		r.agents.heard(req.Name)
	}
	if snap.Image == nil && snap.Node == nil {
		r.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	snap.Refusals = r.Known(owner(snap), nil, 0, snap.Now)
	todo := plan.Compute(snap)
	done := r.Execute(ctx, owner(snap), todo.Plan)
	again, statusErr := r.writeStatus(ctx, snap, todo)
	if err := errors.Join(done.Err, statusErr); err != nil {
		return ctrl.Result{}, fmt.Errorf("keep the images of node %s: %w", req.Name, err)
	}
	todo.Wake(done.RetryAfter)
	todo.Wake(again)
	return ctrl.Result{RequeueAfter: todo.WakeAfter}, nil
}

// owner is what the actions are for: the NodeImage, or the node that is to get one.
func owner(snap plan.Snapshot) client.Object {
	if snap.Image != nil {
		return snap.Image
	}
	return snap.Node
}
