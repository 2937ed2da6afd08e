package nodes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Events handles events of nodes that change a field that rules read: it wakes the objects that they concern. old is nil
// for a node that is new, and now for one that is gone. Nodes of the first list wake no object: all objects are woken
// then.
type Events func(ctx context.Context, old, now *corev1.Node, q Queue)

var _ handler.EventHandler = Events(nil)

// Create implements handler.EventHandler.
func (f Events) Create(ctx context.Context, e event.CreateEvent, q Queue) {
	if node, ok := e.Object.(*corev1.Node); ok && !e.IsInInitialList {
		f(ctx, nil, node, q)
	}
}

// Delete implements handler.EventHandler.
func (f Events) Delete(ctx context.Context, e event.DeleteEvent, q Queue) {
	if node, ok := e.Object.(*corev1.Node); ok {
		f(ctx, node, nil, q)
	}
}

// Update implements handler.EventHandler.
func (f Events) Update(ctx context.Context, e event.UpdateEvent, q Queue) {
	old, okOld := e.ObjectOld.(*corev1.Node)
	now, okNow := e.ObjectNew.(*corev1.Node)
	if okOld && okNow && Changed(old, now) {
		f(ctx, old, now, q)
	}
}

// Generic implements handler.EventHandler. It is never called: no source sends such events.
func (Events) Generic(context.Context, event.GenericEvent, Queue) {}
