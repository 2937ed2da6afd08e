package marks

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
)

// Options describe the controller of one label.
type Options struct {
	pass.Settings
	// EventSource is the name under which users see its events.
	EventSource string
	Label       Label
	// Grace is how long a namespace keeps its label without an object: who replaces one by another finds it in place.
	Grace time.Duration
}

// SetUp adds the controller that marks namespaces with objects of type T to the manager. The cache of the manager must
// hold namespaces with the settings of Namespaces.
func SetUp[T any, P fastclient.Object[T]](ctx context.Context, mgr ctrl.Manager, o Options) error {
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  ControllerName,
		EventSource: o.EventSource,
		Kinds:       map[client.Object]cache.ByObject{&corev1.Namespace{}: Namespaces(o.Namespace), P(new(T)): {}},
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

// Namespaces returns the cache of namespaces: one of them or, when the name is empty, all.
func Namespaces(name string) cache.ByObject {
	o := cache.ByObject{Field: fields.Everything(), Transform: fastclient.Trim}
	if name != "" {
		o.Field = fields.OneTermEqualSelector("metadata.name", name)
	}
	return o
}
