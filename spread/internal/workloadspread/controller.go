package workloadspread

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// reconciler reconciles WorkloadSpreads. It holds no state that the cluster does not hold; its memory only brings events to
// their spread.
type reconciler struct {
	*pass.Controller
	snapshots *Snapshots
	// isComplete reports whether the cache has the pods of a namespace.
	isComplete func(namespace string) bool
	targets    *targets
	meter      *meter
	through    func(context.Context, client.Object, func(client.Object) client.Object) (client.Object, error)
}

// Reconcile runs one pass over a WorkloadSpread.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	if !r.isComplete(key.Namespace) {
		return r.wait(ctx, key)
	}
	snap, again, err := r.snapshot(ctx, key)
	if apierrors.IsForbidden(err) {
		return pass.Pass{
			Object: snap.Spread,
			Plan:   plan.Unread(err, unknownRetry),
			Err:    err,
			Status: func(action.Failures) client.Object {
				return withStatus(snap.Spread, plan.Unreadable(snap, err))
			},
		}, nil
	}
	if apierrors.IsNotFound(err) {
		return r.release(ctx, key, err)
	}
	if err != nil {
		return pass.Pass{}, err
	}
	if snap.Spread.DeletionTimestamp != nil {
		return pass.Pass{Object: snap.Spread}, nil
	}
	todo := plan.Compute(snap)
	todo.RequeueWithin(again)
	r.meter.show(key, todo.Numbers())
	p := passOf(snap.Spread, todo)
	p.Through = r.through
	return p, nil
}

// wait is a pass that comes again once the cache may have the pods.
func (r *reconciler) wait(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	spread, err := fastclient.Get[v1beta1.WorkloadSpread](ctx, r.Reader, key)
	if apierrors.IsNotFound(err) { // each of its pods wakes it when it comes to the cache
		return r.release(ctx, key, err)
	}
	if err != nil {
		return pass.Pass{}, fmt.Errorf("read workload spread %s: %w", key, err)
	}
	p := pass.Pass{Object: spread}
	p.Plan.RequeueWithin(loading)
	return p, nil
}

// snapshot reads the state of the spread of that name, as Snapshots.Read does.
func (r *reconciler) snapshot(ctx context.Context, key types.NamespacedName) (s plan.Snapshot, again time.Duration, err error) {
	spread, err := fastclient.Get[v1beta1.WorkloadSpread](ctx, r.Reader, key)
	if err != nil {
		return s, 0, fmt.Errorf("read workload spread %s: %w", key, err)
	}
	s, again, err = r.snapshots.Read(ctx, spread)
	s.Refusals = r.KnownRefusals(spread, nil, 0, s.Now)
	return s, again, err
}

// passOf is the pass that carries out a plan. Admission writes the same status.
func passOf(spread *v1beta1.WorkloadSpread, todo plan.Plan) pass.Pass {
	return pass.Pass{
		Object: spread,
		Plan:   todo.Plan,
		Status: func(action.Failures) client.Object { return withStatus(spread, todo.Status) },
		Renew: func(newer client.Object) (client.Object, []action.Notice) {
			spread, ok := newer.(*v1beta1.WorkloadSpread)
			if !ok {
				return nil, nil
			}
			status, notices := todo.Renew(spread)
			if status == nil {
				return nil, nil
			}
			return withStatus(spread, status), notices
		},
	}
}

func withStatus(spread *v1beta1.WorkloadSpread, status *v1beta1.WorkloadSpreadStatus) client.Object {
	after := spread.DeepCopy()
	after.Status = *status
	return after
}
