package broadcastjob

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/nodes"
	"github.com/flotilla-project/flotilla/core/workloads/ownership"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/broadcastjob/plan"
)

// batch is how long events of pods are gathered: a pass costs as much as there are nodes, an event only wakes it.
const batch = 100 * time.Millisecond

// podEvents wakes the job of a pod, or the one that it was taken from, when something happens to it that a plan reads.
func podEvents() handler.EventHandler {
	wake := func(o client.Object, q nodes.Queue) {
		if owner := ownership.Controller(o, kind().GroupKind()); owner != nil {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}}, batch)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q nodes.Queue) { wake(e.Object, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q nodes.Queue) { wake(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q nodes.Queue) {
			old, okOld := e.ObjectOld.(*corev1.Pod)
			now, okNow := e.ObjectNew.(*corev1.Pod)
			if okOld && okNow && podChanged(old, now) {
				wake(old, q)
				wake(now, q)
			}
		},
	}
}

// podChanged reports whether two versions of a trimmed pod differ in the fields that plans read.
func podChanged(old, now *corev1.Pod) bool {
	return (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		!equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences) ||
		!equality.Semantic.DeepEqual(old.Spec, now.Spec) || !equality.Semantic.DeepEqual(old.Status, now.Status)
}

// nodeEvents wakes the jobs to which a node has become something else. Jobs that have ended are left alone.
func (p *passes) nodeEvents(ctx context.Context, old, now *corev1.Node, q nodes.Queue) {
	jobs, err := fastclient.All[v1beta1.BroadcastJob](ctx, p.Reader, "")
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to list the BroadcastJobs that are affected by a change of a node")
		return
	}
	for _, job := range jobs {
		if plan.Finished(job) {
			continue
		}
		template := p.eligible.Template(job)
		if old == nil || now == nil || old.UID != now.UID || template.Of(old) != template.Of(now) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}, batch)
		}
	}
}
