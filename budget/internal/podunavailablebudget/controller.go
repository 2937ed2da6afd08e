package podunavailablebudget

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/podunavailablebudget/plan"
)

// reconciler reconciles PodUnavailableBudgets.
type reconciler struct {
	*pass.Controller
	cover      cover.Reader
	snapshots  *Snapshots
	overlaps   *overlaps
	workloads  *workloads
	meter      meter
	isComplete func(namespace string) bool
	chosen     chan<- event.GenericEvent
	through    func(context.Context, client.Object, func(client.Object) client.Object) (client.Object, error)
}

// Reconcile runs one pass over a budget.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.pass)
}

func (r *reconciler) pass(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
	b, err := fastclient.Get[v1beta1.PodUnavailableBudget](ctx, r.Reader, key)
	if err != nil {
		return pass.Pass{}, fmt.Errorf("read budget %s: %w", key, err)
	}
	if !r.isComplete(key.Namespace) {
		p := pass.Pass{Object: b}
		p.Plan.RequeueWithin(loading)
		return p, nil
	}
	snap, err := r.snapshots.Read(ctx, b)
	if err != nil {
		return pass.Pass{}, err
	}
	snap.Refusals = r.KnownRefusals(b, nil, 0, snap.Now)
	again := r.overlaps.compare(&snap)
	todo := plan.Compute(snap)
	if again > 0 {
		todo.RequeueWithin(again)
	}
	if len(snap.Workloads) == 0 || drifts(snap.Workloads) || !r.workloads.sees(key) {
		todo.RequeueWithin(recheck)
	}
	if t := b.Spec.TargetReference; t != nil && cover.MaySelect(cover.KindOf(t)) {
		select {
		case r.chosen <- event.GenericEvent{Object: snap.Budget}:
		case <-ctx.Done():
		}
	}
	r.meter.show(key, &todo.Status, disruption.Guarded(snap.Pods))
	made := passOf(snap, todo)
	made.Through = r.through
	for _, pod := range todo.Undone {
		made.OtherNotices = append(made.OtherNotices, pass.Notices{Object: pod, Events: []action.Notice{{
			Type:       corev1.EventTypeWarning,
			Reason:     disruption.EventNotDeleted,
			WithStatus: true,
			Note:       "PodUnavailableBudget " + key.Name + " allowed the deletion of this pod, but the pod still runs after " + disruption.Life.String(),
		}}})
	}
	return made, nil
}

// passOf is the pass that carries out a plan. Admission writes the same status.
func passOf(snap plan.Snapshot, todo plan.Plan) pass.Pass {
	return pass.Pass{
		Object: snap.Budget,
		Plan:   todo.Plan,
		Err:    todo.Err,
		Status: func(action.Failures) client.Object { return withStatus(snap.Budget, todo.Status) },
		Renew: func(newer client.Object) (client.Object, []action.Notice) {
			b, ok := newer.(*v1beta1.PodUnavailableBudget)
			if !ok {
				return nil, nil
			}
			renewed, ok := snap.Renew(b)
			if !ok {
				return nil, nil
			}
			return withStatus(b, renewed.Status), renewed.Notices
		},
	}
}

func withStatus(b *v1beta1.PodUnavailableBudget, status v1beta1.PodUnavailableBudgetStatus) client.Object {
	after := b.DeepCopy()
	after.Status = status
	return after
}

// drifts reports whether the replicas of one of the workloads can change without an event.
func drifts(workloads []disruption.Workload) bool {
	for i := range workloads {
		if workloads[i].Drifts || workloads[i].Unknown != "" {
			return true
		}
	}
	return false
}
