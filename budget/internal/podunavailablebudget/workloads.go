package podunavailablebudget

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

// republished is how long changes of a workload's status are gathered: most are no change of its selector.
const republished = time.Second

// workloads wakes budgets when the workloads change that their numbers follow from. Kinds are watched from the first
// budget on that depends on one of them; of their objects only metadata are cached.
type workloads struct {
	mgr     ctrl.Manager
	caches  func(schema.GroupKind) bool // whether objects of a kind are cached
	edited  chan event.GenericEvent
	changed chan event.GenericEvent // otherwise: their status may show which pods they have
	ended   chan struct{}

	mu      sync.Mutex
	watched map[schema.GroupKind]bool
	of      map[types.NamespacedName]map[cover.Object]bool // by budget
	budgets map[cover.Object]map[types.NamespacedName]bool // by workload
}

func newWorkloads(mgr ctrl.Manager, caches func(schema.GroupKind) bool) *workloads {
	return &workloads{
		mgr:     mgr,
		caches:  caches,
		edited:  make(chan event.GenericEvent),
		changed: make(chan event.GenericEvent),
		ended:   make(chan struct{}),
		watched: map[schema.GroupKind]bool{},
		of:      map[types.NamespacedName]map[cover.Object]bool{},
		budgets: map[cover.Object]map[types.NamespacedName]bool{},
	}
}

// run ends the delivery of events with the manager.
func (w *workloads) run(ctx context.Context) error {
	<-ctx.Done()
	close(w.ended)
	return nil
}

// follow has the budget woken by these objects, as far as they are cached, and by no others.
func (w *workloads) follow(ctx context.Context, budget types.NamespacedName, on map[cover.Object]bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(budget)
	w.of[budget] = on
	for o := range on {
		if w.budgets[o] == nil {
			w.budgets[o] = map[types.NamespacedName]bool{}
		}
		w.budgets[o][budget] = true
		if err := w.watch(ctx, o.Kind); err != nil {
			return err
		}
	}
	return nil
}

// sees reports whether the budget is woken by all objects that it follows from.
func (w *workloads) sees(budget types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for o := range w.of[budget] {
		if !w.watched[o.Kind] {
			return false
		}
	}
	return true
}

// Forget implements pass.Memory.
func (w *workloads) Forget(budget types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(budget)
}

func (w *workloads) forget(budget types.NamespacedName) {
	for o := range w.of[budget] {
		if delete(w.budgets[o], budget); len(w.budgets[o]) == 0 {
			delete(w.budgets, o)
		}
	}
	delete(w.of, budget)
}

// watch adds a handler to the cache of the kind's metadata. A kind that the cluster does not serve, or that may not be
// watched, has none yet: the budget is looked at again.
func (w *workloads) watch(ctx context.Context, kind schema.GroupKind) error {
	if w.watched[kind] || !w.caches(kind) {
		return nil
	}
	mapping, err := w.mgr.GetRESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find kind %s: %w", kind, err)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := w.mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind, err)
	}
	if _, err := informer.AddEventHandler(w.handler(kind)); err != nil {
		return fmt.Errorf("watch %s: %w", kind, err)
	}
	w.watched[kind] = true
	return nil
}

func (w *workloads) handler(kind schema.GroupKind) toolscache.ResourceEventHandler {
	tellIn := func(events chan<- event.GenericEvent, o any) {
		if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if m, ok := o.(metav1.Object); ok {
			w.tell(events, cover.Object{Kind: kind, Name: types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}})
		}
	}
	tell := func(o any) { tellIn(w.edited, o) }
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    tell,
		DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			b, okBefore := before.(metav1.Object)
			a, okAfter := after.(metav1.Object)
			switch {
			case !okBefore || !okAfter:
			case b.GetUID() != a.GetUID() || b.GetGeneration() != a.GetGeneration() ||
				(b.GetDeletionTimestamp() == nil) != (a.GetDeletionTimestamp() == nil):
				tell(after)
			case cover.MaySelect(kind) && b.GetResourceVersion() != a.GetResourceVersion():
				tellIn(w.changed, after)
			}
		},
	}
}

// `tell` wakes the budgets that depend on the object.
func (w *workloads) tell(events chan<- event.GenericEvent, o cover.Object) {
	w.mu.Lock()
	budgets := make([]types.NamespacedName, 0, len(w.budgets[o]))
	for b := range w.budgets[o] {
		budgets = append(budgets, b)
	}
	w.mu.Unlock()
	for _, b := range budgets {
		object := &v1beta1.PodUnavailableBudget{}
		object.Namespace, object.Name = b.Namespace, b.Name
		select {
		case events <- event.GenericEvent{Object: object}:
		case <-w.ended:
			return
		}
	}
}
