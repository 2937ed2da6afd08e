package frame

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"
)

// Owners maps events of dependent objects to the workloads of a kind.
type Owners struct {
	// Kind is the kind of the workloads, in any version.
	Kind schema.GroupKind
	// Candidates returns the workloads that could adopt a pod without a controller; may be nil.
	Candidates func(ctx context.Context, pod *corev1.Pod) []types.NamespacedName
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Pods returns a handler that wakes the owner of a pod, the former owner of a released pod, and for a pod without a
// controller the candidates. Changes of pods that no plan depends on wake no workload.
func (o Owners) Pods() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { o.wake(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { o.wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			old, okOld := e.ObjectOld.(*corev1.Pod)
			now, okNow := e.ObjectNew.(*corev1.Pod)
			if okOld && okNow && !podstate.Changed(old, now) {
				return
			}
			o.wake(ctx, e.ObjectNew, q)
			if before, ok := o.ownerOf(e.ObjectOld); ok {
				q.Add(before)
			}
		},
	}
}

// Objects returns a handler that wakes the owner of an object, such as a claim or a revision.
func (o Owners) Objects() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if owner, ok := o.ownerOf(object); ok {
			return []reconcile.Request{owner}
		}
		return nil
	})
}

func (o Owners) wake(ctx context.Context, object client.Object, q queue) {
	if owner, ok := o.ownerOf(object); ok {
		q.Add(owner)
		return
	}
	pod, ok := object.(*corev1.Pod)
	if !ok || o.Candidates == nil || metav1.GetControllerOfNoCopy(pod) != nil {
		return
	}
	for _, name := range o.Candidates(ctx, pod) {
		q.Add(reconcile.Request{NamespacedName: name})
	}
}

// ownerOf returns the workload that controls the object.
func (o Owners) ownerOf(object client.Object) (reconcile.Request, bool) {
	ref := ownership.Controller(object, o.Kind)
	if ref == nil {
		return reconcile.Request{}, false
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: ref.Name}}, true
}

// MatchingSelector returns a function that finds the workloads with a selector that matches a pod, for
// Owners.Candidates.
func MatchingSelector[T any, P fastclient.Object[T]](c *Controller, selector func(P) *metav1.LabelSelector) func(context.Context, *corev1.Pod) []types.NamespacedName {
	return func(ctx context.Context, pod *corev1.Pod) []types.NamespacedName {
		workloads, err := fastclient.All[T, P](ctx, c.Reader, pod.Namespace)
		if err != nil {
			return nil
		}
		var names []types.NamespacedName
		for _, w := range workloads {
			s, err := metav1.LabelSelectorAsSelector(selector(w))
			if err == nil && !s.Empty() && s.Matches(labels.Set(pod.Labels)) {
				names = append(names, client.ObjectKeyFromObject(P(w)))
			}
		}
		return names
	}
}
