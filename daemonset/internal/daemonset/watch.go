package daemonset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/frame/engine"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/eligibility"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// nodeEvents wakes the sets that an event of one node concerns. It looks at that node alone, once for each set.
type nodeEvents struct {
	reader   *fastclient.Reader
	eligible *eligibility.Memory
}

var _ handler.EventHandler = nodeEvents{}

// newNodeEvents returns the handler for an engine.
func newNodeEvents(e *engine.Engine, eligible *eligibility.Memory) nodeEvents {
	return nodeEvents{reader: e.Reader, eligible: eligible}
}

// Create wakes the sets that the node can run a pod of. Nodes of the first list wake nobody: all sets are woken then.
func (n nodeEvents) Create(ctx context.Context, e event.CreateEvent, q queue) {
	if node, ok := e.Object.(*corev1.Node); ok && !e.IsInInitialList {
		n.wake(ctx, q, func(_ *v1beta1.DaemonSet, t *eligibility.Template) bool { return t.Of(node).ShouldContinue })
	}
}

// Delete wakes the sets that the node could run a pod of.
func (n nodeEvents) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	if node, ok := e.Object.(*corev1.Node); ok {
		n.wake(ctx, q, func(_ *v1beta1.DaemonSet, t *eligibility.Template) bool { return t.Of(node).ShouldContinue })
	}
}

// Update wakes the sets to which the node is something else than before.
func (n nodeEvents) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	old, okOld := e.ObjectOld.(*corev1.Node)
	now, okNow := e.ObjectNew.(*corev1.Node)
	if okOld && okNow && nodeChanged(old, now) {
		n.wake(ctx, q, func(set *v1beta1.DaemonSet, t *eligibility.Template) bool { return concerned(set, t, old, now) })
	}
}

// Generic is never called: nobody sends such events.
func (nodeEvents) Generic(context.Context, event.GenericEvent, queue) {}

func (n nodeEvents) wake(ctx context.Context, q queue, concerns func(*v1beta1.DaemonSet, *eligibility.Template) bool) {
	sets, err := fastclient.All[v1beta1.DaemonSet](ctx, n.reader, "")
	if err != nil {
		log.FromContext(ctx).Error(err, "no DaemonSet is told of a change of a node")
		return
	}
	for _, set := range sets {
		if concerns(set, n.eligible.Template(set, &set.Spec.Template)) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
		}
	}
}

// concerned reports whether a change of a node can change the plan or the status of a set.
func concerned(set *v1beta1.DaemonSet, t *eligibility.Template, old, now *corev1.Node) bool {
	before, after := t.Of(old), t.Of(now)
	switch {
	case before != after:
		return true
	case !after.ShouldContinue:
		return false
	case old.UID != now.UID, readinessChanged(old, now):
		return true
	}
	return selected(set, old) != selected(set, now)
}

// selected reports whether the selector of the rolling update matches the node. One that cannot be read matches none.
func selected(set *v1beta1.DaemonSet, node *corev1.Node) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(rolling.Selector)
	return err == nil && selector.Matches(labels.Set(node.Labels))
}
