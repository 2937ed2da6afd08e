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

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

const (
	// ControllerName is the name of the controller in logs, metrics and its user agent.
	ControllerName = "namespacemarks"
	// grace is how long a namespace keeps its label without a WorkloadSpread. Whoever replaces one by another finds the
	// label in place, and no pass over the namespace comes between the label and the WorkloadSpread that it is for.
	grace = time.Minute
)

// Namespaces returns the cache of namespaces: one of them or, when the name is empty, all.
func Namespaces(name string) cache.ByObject {
	o := cache.ByObject{Field: fields.Everything(), Transform: fastclient.Trim}
	if name != "" {
		o.Field = fields.OneTermEqualSelector("metadata.name", name)
	}
	return o
}

// reconciler keeps the labels of namespaces.
type reconciler struct{ *base.Controller }

// SetUp adds the controller to the manager, whose cache must hold namespaces as Namespaces says.
func SetUp(ctx context.Context, mgr ctrl.Manager, o base.Settings) error {
	b, err := base.New(ctx, mgr, base.Options{
		Settings: o, Controller: ControllerName, EventSource: "workloadspread-controller",
		Kinds: map[client.Object]cache.ByObject{&corev1.Namespace{}: Namespaces(o.Namespace), &v1beta1.WorkloadSpread{}: {}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&corev1.Namespace{}, builder.WithPredicates(lost())).
		Watches(&v1beta1.WorkloadSpread{}, spreads()).
		Complete(&reconciler{b})
	if err != nil {
		return fmt.Errorf("make the controller of marks on namespaces: %w", err)
	}
	return nil
}

// lost selects updates after which a namespace has no label. One that admission has just set has no WorkloadSpread yet.
func lost() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*corev1.Namespace)
		after, okAfter := e.ObjectNew.(*corev1.Namespace)
		return okBefore && okAfter && isMarked(before) && !isMarked(after)
	}}
}

// spreads wakes the namespace of a WorkloadSpread that comes or goes.
func spreads() handler.EventHandler {
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
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, func(ctx context.Context, key types.NamespacedName) (base.Pass, error) {
		ns, err := fastclient.Get[corev1.Namespace](ctx, r.Reader, key)
		if err != nil {
			return base.Pass{}, fmt.Errorf("read namespace %s: %w", key.Name, err)
		}
		if ns.DeletionTimestamp != nil {
			return base.Pass{Object: ns}, nil
		}
		all, err := fastclient.All[v1beta1.WorkloadSpread](ctx, r.Reader, ns.Name)
		if err != nil {
			return base.Pass{}, fmt.Errorf("list the workload spreads of namespace %s: %w", ns.Name, err)
		}
		now := r.Clock.Now()
		return base.Pass{Object: ns, Plan: ofNamespace(ns, len(all) > 0, action.Plan{Refusals: r.KnownRefusals(ns, nil, 0, now), Now: now})}, nil
	})
}

// ofNamespace adds to a plan what gives a namespace its label while it has WorkloadSpreads.
func ofNamespace(ns *corev1.Namespace, hasSpreads bool, p action.Plan) action.Plan {
	_, labelled := ns.Labels[v1beta1.NamespaceLabel]
	if hasSpreads && isMarked(ns) || !hasSpreads && !labelled {
		return p
	}
	value := any("true")
	if !hasSpreads {
		value = nil
	}
	mark := action.Action{Verb: action.PatchMetadata, Object: ns, Reason: "Mark", Patches: []action.Patch{{
		Type: types.MergePatchType, AnyVersion: true,
		Body: map[string]any{"metadata": map[string]any{"labels": map[string]any{v1beta1.NamespaceLabel: value}}},
	}}}
	if !p.Defers(&mark) {
		p.Add(action.Step{Name: "mark", Actions: []action.Action{mark}})
	}
	return p
}
