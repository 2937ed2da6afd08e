package podunavailablebudget

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

// lookups is for how many pods budgets are found at a time. The API server may have to be asked for owners of a pod.
const lookups = 8

// podEvents wakes the budgets that cover a pod when it comes, goes, or counts in another way. It finds these budgets beside the
// events of pods: a pod whose owners take long to read delays no other one.
type podEvents struct {
	budgets func(context.Context, *corev1.Pod) []*v1beta1.PodUnavailableBudget
	due     *workqueue.Typed[podEvent]
}

// podEvent is that the budgets of a pod, as it is or was, go into a queue after a while.
type podEvent struct {
	pod   *corev1.Pod
	after time.Duration
	into  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newPodEvents(budgets func(context.Context, *corev1.Pod) []*v1beta1.PodUnavailableBudget) *podEvents {
	return &podEvents{budgets: budgets, due: workqueue.NewTyped[podEvent]()}
}

// run finds the budgets of pods until the context ends.
func (w *podEvents) run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range lookups {
		workers.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.due.ShutDown()
	workers.Wait()
	return nil
}

func (w *podEvents) next(ctx context.Context) bool {
	one, ended := w.due.Get()
	if ended || ctx.Err() != nil {
		return false
	}
	defer w.due.Done(one)
	for _, b := range w.budgets(ctx, one.pod) {
		one.into.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}, one.after)
	}
	return true
}

// handler takes events of pods.
func (w *podEvents) handler() handler.EventHandler {
	add := func(o client.Object, into workqueue.TypedRateLimitingInterface[reconcile.Request], after time.Duration) {
		if pod, ok := o.(*corev1.Pod); ok {
			w.due.Add(podEvent{pod, after, into})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, q, batch)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(e.Object, q, batch)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			updated(e, func(o client.Object, after time.Duration) { add(o, q, after) })
		},
	}
}

// budgetsOf returns the budgets that may cover a pod: all of its namespace while its owners are not known.
func budgetsOf(ctx context.Context, reader cover.Reader, pod *corev1.Pod) []*v1beta1.PodUnavailableBudget {
	budgets, err := reader.Budgets(ctx, pod)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "The budgets of a pod are not known: all of its namespace are looked at", "pod", client.ObjectKeyFromObject(pod))
		budgets, _ = fastclient.All[v1beta1.PodUnavailableBudget](ctx, reader.Cache, pod.Namespace)
	}
	return budgets
}
