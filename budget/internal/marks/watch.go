package marks

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-project/flotilla/budget/internal/wakeups"
)

// changes selects the events after which another budget may cover a pod, or its mark may be wrong.
func changes() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return true }, // the controller can forget the pod
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld, e.ObjectNew
			ownerBefore := metav1.GetControllerOf(before)
			ownerAfter := metav1.GetControllerOf(after)
			return before.GetUID() != after.GetUID() || !maps.Equal(before.GetLabels(), after.GetLabels()) ||
				(ownerBefore == nil) != (ownerAfter == nil) || ownerBefore != nil && ownerBefore.UID != ownerAfter.UID ||
				!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
		},
	}
}

// budgetEvents wakes the pods that a budget concerns.
func budgetEvents(wake *wakeups.Queue[types.NamespacedName]) handler.EventHandler {
	add := func(o client.Object, q wakeups.Requests) { wake.Add(client.ObjectKeyFromObject(o), q, 0) }
	return handler.Funcs{
		CreateFunc:  func(_ context.Context, e event.CreateEvent, q wakeups.Requests) { add(e.Object, q) },
		UpdateFunc:  func(_ context.Context, e event.UpdateEvent, q wakeups.Requests) { add(e.ObjectNew, q) },
		DeleteFunc:  func(_ context.Context, e event.DeleteEvent, q wakeups.Requests) { add(e.Object, q) },
		GenericFunc: func(_ context.Context, e event.GenericEvent, q wakeups.Requests) { add(e.Object, q) },
	}
}
