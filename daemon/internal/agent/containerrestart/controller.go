package containerrestart

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// controllerName is the name of the controller in logs.
const controllerName = "containerrestart"

const (
	// workers is how many passes run at a time. Stops do not occupy a worker.
	workers = 32
	// unavailablePeriod is when the next pass runs while the runtime does not answer.
	unavailablePeriod = 5 * time.Second
	// podIndex holds the UID of the pod of a request.
	podIndex = "podUID"
)

// reconciler runs the passes over the pods of the node.
type reconciler struct {
	*pass.Controller
	passes *Passes
	stops  *stops.Stops
	wakeup chan event.TypedGenericEvent[ctrl.Request]
	ending chan struct{}
}

func keyOf(request *v1beta1.ContainerRecreateRequest) types.NamespacedName {
	return types.NamespacedName{Namespace: request.Namespace, Name: request.Labels[v1beta1.PodUIDLabel]}
}

// podOf returns an object for the pod of a key, under which refusals are remembered. Its name is the name in the key.
func podOf(key types.NamespacedName) *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return pod
}

// Start waits for the stops under way when the manager ends.
func (r *reconciler) Start(ctx context.Context) error {
	<-ctx.Done()
	close(r.ending)
	r.stops.Wait()
	return nil
}

// wake requests a pass over a pod. When the agent ends, the controller runs no passes: then wake runs it.
func (r *reconciler) wake(ctx context.Context, key types.NamespacedName) {
	req := ctrl.Request{NamespacedName: key}
	select {
	case r.wakeup <- event.TypedGenericEvent[ctrl.Request]{Object: req}:
	case <-r.ending:
		if _, err := r.Reconcile(ctx, req); err != nil {
			ctrl.LoggerFrom(ctx).Info("A stop is left to the next agent", "pod", key.Name, "reason", err.Error())
		}
	}
}

// Reconcile runs one pass over the requests for a pod.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.Handle(ctx, req, r.passes.Look)
}
