package marks

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "namespacemarks"

// maxSkew is how far the clocks of replicas may be apart. A note from further ahead counts for nothing.
const maxSkew = time.Minute

// Namespaces returns the cache of namespaces: one of them or, when the name is empty, all.
func Namespaces(name string) cache.ByObject {
	o := cache.ByObject{Field: fields.Everything(), Transform: fastclient.Trim}
	if name != "" {
		o.Field = fields.OneTermEqualSelector("metadata.name", name)
	}
	return o
}

// Options describe the controller of one label.
type Options struct {
	pass.Settings
	// EventSource is the name under which users see its events.
	EventSource string
	Label       Label
	// Grace is how long a namespace keeps its label without an object: who replaces one by another finds it in place.
	Grace time.Duration
}

// reconciler keeps the labels of namespaces.
type reconciler[T any, P fastclient.Object[T]] struct {
	*pass.Controller
	label Label
	grace time.Duration
}

// SetUp adds the controller that marks namespaces with objects of type T to the manager. The cache of the manager must
// hold namespaces with the settings of Namespaces.
func SetUp[T any, P fastclient.Object[T]](ctx context.Context, mgr ctrl.Manager, o Options) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings: o.Settings, Controller: ControllerName, EventSource: o.EventSource,
		Kinds: map[client.Object]cache.ByObject{&corev1.Namespace{}: Namespaces(o.Namespace), P(new(T)): {}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.Namespace{}, builder.WithPredicates(o.Label.changes())).
		Watches(P(new(T)), objects(o.Grace)).
		Complete(&reconciler[T, P]{b, o.Label, o.Grace})
	if err != nil {
		return fmt.Errorf("make the controller of marks on namespaces: %w", err)
	}
	return nil
}

// changes selects updates that give or take the label.
func (l Label) changes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, marked := e.ObjectOld.GetLabels()[string(l)]
		after, isMarked := e.ObjectNew.GetLabels()[string(l)]
		return before != after || marked != isMarked
	}}
}

// objects wakes the namespace of an object that comes or goes.
func objects(grace time.Duration) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	wake := func(q queue, o client.Object, after time.Duration) {
		q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}, after)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(q, e.Object, 0) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { wake(q, e.Object, grace) },
	}
}

// Reconcile runs one pass over a namespace.
func (r *reconciler[T, P]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, func(ctx context.Context, key types.NamespacedName) (pass.Pass, error) {
		ns, err := fastclient.Get[corev1.Namespace](ctx, r.Reader, key)
		if err != nil {
			return pass.Pass{}, fmt.Errorf("read namespace %s: %w", key.Name, err)
		}
		if ns.DeletionTimestamp != nil {
			return pass.Pass{Object: ns}, nil
		}
		all, err := fastclient.All[T, P](ctx, r.Reader, ns.Name)
		if err != nil {
			return pass.Pass{}, fmt.Errorf("list the %T of namespace %s: %w", *new(T), ns.Name, err)
		}
		now := r.Clock.Now()
		p := action.Plan{Refusals: r.KnownRefusals(ns, nil, 0, now), Now: now}
		return pass.Pass{Object: ns, Plan: r.label.keep(ns, len(all) > 0, r.grace, p)}, nil
	})
}
