package recreate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/controllers/scope"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/podcache"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// ControllerName names the controller in logs, metrics and its user agent.
const ControllerName = "containerrecreaterequest"

// workers is how many requests are reconciled at a time unless the settings set another number.
const workers = 3

// podIndex holds the UID of the pod of a request that is active.
const podIndex = "podUID"

// SetUp adds the controller to the manager, and lets the backlog count by its cache. The manager's cache must hold pods as
// podcache.ByObject defines, of those that the filter passes.
func SetUp(ctx context.Context, mgr ctrl.Manager, o pass.Settings, backlog *Backlog, pods *scope.Filter) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, podIndex, podOf); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	parts, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o,
		Controller:  ControllerName,
		EventSource: "containerrecreaterequest-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.ContainerRecreateRequest{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&corev1.Pod{}:                       podcache.ByObject(o.Namespace),
		},
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: parts,
		memory:     plan.NewMemory(),
		clock:      clockName(),
	}
	parts.AddMemories(r.memory)
	backlog.cached.Store(&cached{mgr.GetCache(), parts.Reader})
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.ContainerRecreateRequest{}).
		Watches(&v1beta1.ContainerRecreateRequest{}, r.turns()).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.requestsFor)).
		WatchesRawSource(source.Func(r.others(pods))).
		WithOptions(o.Options(workers)).
		Complete(r)
}
