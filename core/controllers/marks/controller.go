package marks

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
)

// ControllerName is the name of the controller in logs, metrics and its user agent.
const ControllerName = "namespacemarks"

// maxSkew is how far the clocks of replicas may be apart. A note from further ahead counts for nothing.
const maxSkew = time.Minute

// reconciler keeps the labels of namespaces.
type reconciler[T any, P fastclient.Object[T]] struct {
	*pass.Controller
	label Label
	grace time.Duration
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
