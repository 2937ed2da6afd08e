package podunavailablebudget

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/pods/podstate"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"

	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/wakeups"
)

// batch is how long events of pods are gathered: a pass over a budget costs as much as it has pods.
const batch = 50 * time.Millisecond

// marksBatch is how long marks of pods are gathered. They come one by one, and no grant depends on how many there are.
const marksBatch = time.Second

// Pods returns the cache of pods in one namespace or, when it is empty, in all. It keeps all pods: any of them may be
// covered by a budget that is made later.
func Pods(namespace string) cache.ByObject {
	return fastclient.Within(namespace, cache.ByObject{Transform: trim})
}

// trim keeps the fields of a pod that decide about its budget. Plans of workloads read more fields.
func trim(object any) (any, error) {
	object, err := fastclient.TrimPod(object)
	pod, ok := object.(*corev1.Pod)
	if err != nil || !ok {
		return object, err
	}
	var kept map[string]string
	for _, key := range []string{v1beta1.RelatedAnnotation, v1beta1.LegacyRelatedAnnotation, v1beta1.NoProtectAnnotation} {
		if value, ok := pod.Annotations[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	pod.Annotations = kept
	pod.Spec.Containers = nil
	pod.Spec.InitContainers = nil
	pod.Spec.Volumes = nil
	pod.Status.ContainerStatuses = nil
	pod.Status.InitContainerStatuses = nil
	pod.Status.Conditions = trimConditions(pod.Status.Conditions)
	return pod, nil
}

// trimConditions keeps the type and the status of the conditions that decide, without times and reasons.
func trimConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	kept := make([]corev1.PodCondition, 0, 1) // of most pods
	for _, c := range conditions {
		if c.Type == corev1.PodReady || slices.Contains(disruption.GuardedConditions(), c.Type) {
			kept = append(kept, corev1.PodCondition{Type: c.Type, Status: c.Status})
		}
	}
	return kept
}

// updated wakes the budgets of a pod that has changed.
func updated(e event.UpdateEvent, wake func(client.Object, time.Duration)) {
	before, okBefore := e.ObjectOld.(*corev1.Pod)
	after, okAfter := e.ObjectNew.(*corev1.Pod)
	if !okBefore || !okAfter {
		return
	}
	left := hasLeft(before, after)
	if left {
		wake(before, batch)
	}
	switch {
	case CountsOtherwise(before, after):
		wake(after, batch)
	case disruption.IsGuardedOtherwise(before, after):
		wake(after, marksBatch)
	}
}

// hasLeft reports whether a pod may have left one budget for another.
func hasLeft(before, after *corev1.Pod) bool {
	return !maps.Equal(before.Labels, after.Labels) || owner(before) != owner(after)
}

// CountsOtherwise reports whether the numbers of a budget may change with the pod.
func CountsOtherwise(before, after *corev1.Pod) bool {
	return hasLeft(before, after) || before.UID != after.UID || podstate.IsActive(before) != podstate.IsActive(after) ||
		disruption.IsAvailable(before) != disruption.IsAvailable(after) || disruption.IsProtected(before) != disruption.IsProtected(after)
}

func owner(pod *corev1.Pod) string {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return string(ref.UID)
	}
	return ""
}

// neighbours wakes the other budgets of a namespace when one comes or goes: they may cover the same pods. Budgets that come
// together wake each of the others once.
func neighbours(reader *fastclient.Reader) handler.EventHandler {
	wake := func(ctx context.Context, changed client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		all, err := fastclient.All[v1beta1.PodUnavailableBudget](ctx, reader, changed.GetNamespace())
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to list the other budgets of a namespace", "namespace", changed.GetNamespace())
		}
		for _, b := range all {
			if b.Name != changed.GetName() {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}, comparePause)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if !e.IsInInitialList {
				wake(ctx, e.Object, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, q)
		},
	}
}

// podEvents wakes the budgets that cover a pod, as it is or was, when it comes, goes, or counts in another way.
func podEvents(wake *wakeups.Queue[*corev1.Pod]) handler.EventHandler {
	add := func(o client.Object, into wakeups.Requests, after time.Duration) {
		if pod, ok := o.(*corev1.Pod); ok {
			wake.Add(pod, into, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q wakeups.Requests) { add(e.Object, q, batch) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q wakeups.Requests) { add(e.Object, q, batch) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q wakeups.Requests) {
			updated(e, func(o client.Object, after time.Duration) { add(o, q, after) })
		},
	}
}

// budgetsOf returns the budgets that may cover a pod: all of its namespace while its owners are not known.
func budgetsOf(ctx context.Context, reader cover.Reader, pod *corev1.Pod) []reconcile.Request {
	budgets, err := reader.Budgets(ctx, pod)
	if err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "Failed to find the budgets of a pod: all budgets of its namespace are reconciled", "pod", client.ObjectKeyFromObject(pod))
		budgets, _ = fastclient.All[v1beta1.PodUnavailableBudget](ctx, reader.Cache, pod.Namespace)
	}
	requests := make([]reconcile.Request, len(budgets))
	for i, b := range budgets {
		requests[i].NamespacedName = client.ObjectKeyFromObject(b)
	}
	return requests
}

// wakeAfter wakes objects after a while, once for all events until then.
func wakeAfter(after time.Duration) handler.EventHandler {
	return handler.Funcs{GenericFunc: func(_ context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}, after)
	}}
}
