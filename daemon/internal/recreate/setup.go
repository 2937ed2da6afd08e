package recreate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"

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
// podcache.ByObject defines.
func SetUp(ctx context.Context, mgr ctrl.Manager, o pass.Settings, backlog *Backlog) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, podIndex, podOf); err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	parts, err := pass.New(ctx, mgr, pass.Options{
		Settings: o, Controller: ControllerName, EventSource: "containerrecreaterequest-controller",
		Kinds: map[client.Object]cache.ByObject{
			&v1beta1.ContainerRecreateRequest{}: fastclient.Within(o.Namespace, cache.ByObject{}),
			&corev1.Pod{}:                       podcache.ByObject(o.Namespace),
		},
	})
	if err != nil {
		return err
	}
	r := &reconciler{Controller: parts, memory: plan.NewMemory(), clock: clockName()}
	parts.AddMemories(r.memory)
	backlog.cached.Store(&cached{mgr.GetCache(), parts.Reader})
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.ContainerRecreateRequest{}).
		Watches(&v1beta1.ContainerRecreateRequest{}, r.turns()).
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

// ofPod returns the active requests for the pod with a UID, as the cache has them.
func ofPod(ctx context.Context, reader *fastclient.Reader, namespace, pod string) ([]*v1beta1.ContainerRecreateRequest, error) {
	all, err := fastclient.ByIndex[v1beta1.ContainerRecreateRequest](ctx, reader, namespace, podIndex, pod)
	if err != nil {
		return nil, fmt.Errorf("list the requests for the pod with UID %s: %w", pod, err)
	}
	return all, nil
}

// requestsFor returns the active requests for a pod that do not only wait for their turn. The cache may hold no more of
// the pod than its UID.
func (r *reconciler) requestsFor(ctx context.Context, pod client.Object) []reconcile.Request {
	all, err := ofPod(ctx, r.Reader, pod.GetNamespace(), string(pod.GetUID()))
	if err != nil {
		return nil
	}
	var keys []reconcile.Request
	for _, o := range all {
		if !plan.Waits(o, all) {
			keys = append(keys, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return keys
}

// turns brings the next request for a pod when one has ended or is gone.
func (r *reconciler) turns() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	next := func(ctx context.Context, ended client.Object, q queue) {
		all, err := ofPod(ctx, r.Reader, ended.GetNamespace(), ended.GetLabels()[v1beta1.PodUIDLabel])
		if err != nil {
			return
		}
		if first := plan.First(all); first != nil {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(first)})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if isOpen(e.ObjectOld) && !isOpen(e.ObjectNew) {
				next(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			if isOpen(e.Object) {
				next(ctx, e.Object, q)
			}
		},
	}
}

func isOpen(o client.Object) bool {
	r, ok := o.(*v1beta1.ContainerRecreateRequest)
	return ok && plan.Open(r)
}
