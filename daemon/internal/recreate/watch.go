package recreate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/scope"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// others has the changes of pods that are not cached wake their requests. After a list of all pods, the changes before it may be
// lost: it wakes all requests that are active.
func (r *reconciler) others(pods *scope.Filter) func(context.Context, queue) error {
	return func(ctx context.Context, q queue) error {
		pods.Observe(scope.Observer{
			Changed: func(pod *corev1.Pod) {
				for _, key := range r.requestsFor(ctx, pod) {
					q.Add(key)
				}
			},
			Listed: func() {
				all, err := fastclient.All[v1beta1.ContainerRecreateRequest](ctx, r.Reader, "")
				if err != nil {
					log.FromContext(ctx).Error(err, "Failed to list ContainerRecreateRequests after a list of pods")
					return
				}
				for _, o := range all {
					if plan.Active(o) {
						q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
					}
				}
			},
		})
		return nil
	}
}

// requestsFor returns the active requests for a pod that do not only wait for their turn.
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
