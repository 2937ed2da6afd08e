package podunavailablebudget

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/wakeups"
)

// podEvents wakes the budgets that cover a pod, as it is or was, when it comes, goes, or counts in another way.
func podEvents(wake *wakeups.Queue[*corev1.Pod]) handler.EventHandler {
	add := func(o client.Object, into wakeups.Requests, after time.Duration) {
		if pod, ok := o.(*corev1.Pod); ok {
			wake.Add(pod, into, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q wakeups.Requests) { add(e.Object, q, batch) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q wakeups.Requests) { add(e.Object, q, batch) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q wakeups.Requests) {
			updated(e, func(o client.Object, after time.Duration) { add(o, q, after) })
		},
	}
}

// budgetsOf returns the budgets that may cover a pod: all of its namespace while its owners are not known.
func budgetsOf(ctx context.Context, reader cover.Reader, pod *corev1.Pod) []reconcile.Request {
	budgets, err := reader.Budgets(ctx, pod)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Failed to find the budgets of a pod: all budgets of its namespace are reconciled", "pod", client.ObjectKeyFromObject(pod))
		budgets, _ = fastclient.All[v1beta1.PodUnavailableBudget](ctx, reader.Cache, pod.Namespace)
	}
	requests := make([]reconcile.Request, len(budgets))
	for i, b := range budgets {
		requests[i].NamespacedName = client.ObjectKeyFromObject(b)
	}
	return requests
}
