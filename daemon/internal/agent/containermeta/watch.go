package containermeta

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/flotilla-project/flotilla/core/contract"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
)

// events requests a pass for pods of which the cached fields have changed, not for every event of the kubelet.
func (r *reconciler) events() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(q queue, object client.Object, after time.Duration) {
		if pod, ok := object.(*corev1.Pod); ok && plan.NeedsAnnotation(pod) {
			q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pod)}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			_, reported := e.Object.GetAnnotations()[contract.RuntimeContainersMetaAnnotation]
			if reported || !e.IsInInitialList {
				add(q, e.Object, coalescePeriod)
			} else {
				add(q, e.Object, coalescePeriod+r.config.Spread(initialSpread))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, _ := e.ObjectOld.(*corev1.Pod)
			after, _ := e.ObjectNew.(*corev1.Pod)
			if before == nil || after == nil || !sameExceptVersion(before, after) {
				add(q, e.ObjectNew, coalescePeriod)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object, 0) },
	}
}

// sameExceptVersion reports whether only the resourceVersion of the cached fields has changed.
func sameExceptVersion(a, b *corev1.Pod) bool {
	return a.UID == b.UID && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status, b.Status)
}
