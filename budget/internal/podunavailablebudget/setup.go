package podunavailablebudget

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/pass"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/wakeups"
)

const (
	// ControllerName is the name of the controller in logs, metrics and its user agent.
	ControllerName = "podunavailablebudget"
	// workers is how many budgets are reconciled at a time by default.
	workers = 3
	// recheck is how often a budget is looked at if its workloads send no events: they are not there, or cannot be read.
	recheck = 30 * time.Second
	// loading is how often it is looked whether the cache has the pods of a namespace that has just got its first budget.
	loading = 100 * time.Millisecond
)

// Options describe the controller.
type Options struct {
	pass.Settings
	// Cover reads which pods a budget covers. Its Cache is set by SetUp.
	Cover cover.Reader
	// IsComplete reports whether the cache has the pods of a namespace.
	IsComplete func(namespace string) bool
	// Chosen must have a reader. After each pass it gets the budgets with targets that may show in their status which pods
	// they have.
	Chosen chan<- event.GenericEvent
	// Through writes statuses together with the grants that wait to be recorded, as pass.Pass has it.
	Through func(context.Context, client.Object, func(client.Object) client.Object) (client.Object, error)
}

// SetUp adds the controller to the manager: events of a budget wake it, and events of pods and workloads that concern it.
// The indexes of package cover must have been added.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  ControllerName,
		EventSource: "podunavailablebudget-controller",
		Kinds:       map[client.Object]cache.ByObject{&v1beta1.PodUnavailableBudget{}: {}, &corev1.Pod{}: Pods(o.Namespace)},
	})
	if err != nil {
		return err
	}
	o.Cover.Cache = b.Reader
	followed := newWorkloads(mgr, o.Cover.Targets.Caches)
	snapshots := NewSnapshots(o.Cover, b.Live, b.Clock)
	snapshots.follow = followed.follow
	r := &reconciler{
		Controller: b,
		cover:      o.Cover,
		snapshots:  snapshots,
		overlaps:   newOverlaps(find(o.Cover)),
		workloads:  followed,
		isComplete: o.IsComplete,
		chosen:     o.Chosen,
		through:    o.Through,
	}
	b.AddMemories(snapshots.memory, r.overlaps.asked, r.overlaps.found, r.workloads, r.meter)
	if err := mgr.Add(manager.RunnableFunc(r.workloads.run)); err != nil {
		return fmt.Errorf("add the watches of workloads: %w", err)
	}
	pods := wakeups.New(func(ctx context.Context, pod *corev1.Pod) ([]reconcile.Request, error) {
		return budgetsOf(ctx, r.cover, pod), nil
	})
	if err := mgr.Add(manager.RunnableFunc(pods.Run)); err != nil {
		return fmt.Errorf("add the events of pods: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(r.overlaps.due.Run)); err != nil {
		return fmt.Errorf("add the comparison of budgets: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.PodUnavailableBudget{}).
		Watches(&v1beta1.PodUnavailableBudget{}, neighbours(b.Reader)).
		Watches(&corev1.Pod{}, podEvents(pods)).
		WatchesRawSource(source.Func(func(_ context.Context, q wakeups.Requests) error {
			r.overlaps.into = q
			return nil
		})).
		WatchesRawSource(source.Channel(r.workloads.edited, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.workloads.changed, wakeAfter(republished))).
		WithOptions(o.Options(workers)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}
