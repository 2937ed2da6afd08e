package recreate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/base"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"

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

// SetUp adds the controller to the manager. The manager's cache must hold pods as podcache.ByObject defines.
func SetUp(ctx context.Context, mgr ctrl.Manager, o base.Settings) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, podIndex, podOf); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	base, err := base.New(ctx, mgr, base.Options{
		Settings: o, Controller: ControllerName, EventSource: "containerrecreaterequest-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.ContainerRecreateRequest{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&corev1.Pod{}:                       podcache.ByObject(o.Namespace),
		},
	})
	if err != nil {
		return err
	}
	r := &reconciler{Controller: base, memory: plan.NewMemory(), clock: clockName()}
	base.AddMemories(r.memory)
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.ContainerRecreateRequest{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.requestsFor)).
		WithOptions(o.Options(workers)).
		Complete(r)
}

// podOf returns the value of podIndex.
func podOf(o client.Object) []string {
	if r, ok := o.(*v1beta1.ContainerRecreateRequest); ok && plan.Active(r) {
		return []string{r.Labels[v1beta1.PodUIDLabel]}
	}
	return nil
}

// requestsFor returns the active requests for a pod, of which the cache may hold no more than its UID.
func (r *reconciler) requestsFor(ctx context.Context, pod client.Object) []reconcile.Request {
	all, err := fastclient.ByIndex[v1beta1.ContainerRecreateRequest](ctx, r.Reader, pod.GetNamespace(), podIndex, string(pod.GetUID()))
	if err != nil {
		return nil
	}
	keys := make([]reconcile.Request, 0, len(all))
	for _, o := range all {
		keys = append(keys, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	}
	return keys
}
