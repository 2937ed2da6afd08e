package cloneset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/podstate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// ControllerName names the controller in logs, metrics and its user agent.
const ControllerName = "cloneset"

// SetUp adds the controller to the manager: every event of a CloneSet, of its claims and of its
// revisions wakes it; of its pods those that a plan could judge differently.
func (r *Reconciler) SetUp(mgr ctrl.Manager, workers int) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&v1beta1.CloneSet{}).
		Watches(&corev1.Pod{}, r.podHandler()).
		Watches(&corev1.PersistentVolumeClaim{}, ownerHandler()).
		Watches(&appsv1.ControllerRevision{}, ownerHandler()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// podHandler wakes the owner of a pod, the former owner of a released one, and for a pod without a
// controller every CloneSet that could adopt it.
func (r *Reconciler) podHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.wake(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { r.wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			old, okOld := e.ObjectOld.(*corev1.Pod)
			now, okNow := e.ObjectNew.(*corev1.Pod)
			if okOld && okNow && !podstate.Changed(old, now) {
				return
			}
			r.wake(ctx, e.ObjectNew, q)
			if before, ok := ownerOf(e.ObjectOld); ok {
				q.Add(before)
			}
		},
	}
}

func (r *Reconciler) wake(ctx context.Context, o client.Object, q queue) {
	if owner, ok := ownerOf(o); ok {
		q.Add(owner)
		return
	}
	if metav1.GetControllerOfNoCopy(o) != nil {
		return
	}
	sets, err := fastclient.All[v1beta1.CloneSet](ctx, r.Reader, o.GetNamespace())
	if err != nil {
		return
	}
	for _, set := range sets {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(o.GetLabels())) {
			name := client.ObjectKeyFromObject(set)
			r.orphans.forget(name)
			q.Add(reconcile.Request{NamespacedName: name})
		}
	}
}

// ownerHandler wakes the CloneSet that controls an object.
func ownerHandler() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if owner, ok := ownerOf(o); ok {
			return []reconcile.Request{owner}
		}
		return nil
	})
}

// ownerOf is the CloneSet that controls the object, whichever version its reference names.
func ownerOf(o client.Object) (reconcile.Request, bool) {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil || ref.Kind != v1beta1.Kind {
		return reconcile.Request{}, false
	}
	if ref.APIVersion != contract.AppsGroup+"/v1beta1" && ref.APIVersion != contract.AppsGroup+"/v1alpha1" {
		return reconcile.Request{}, false
	}
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name}}, true
}
