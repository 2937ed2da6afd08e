package containermeta

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

const (
	stopReason   = "Metadata"
	defaultGrace = 30 * time.Second

	// coalescePeriod delays a pass so that several events of one change lead to one pass.
	coalescePeriod = time.Second
	// initialSpread is the time over which passes of pods that are older than the agent are spread.
	initialSpread = 2 * time.Minute
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

// graceOf returns the time that the kubelet would give the container.
func graceOf(c *cri.Container) time.Duration {
	for _, seconds := range []*int64{c.DeletionGracePeriod, c.TerminationGracePeriod} {
		if seconds != nil {
			return action.Seconds(*seconds)
		}
	}
	return defaultGrace
}

// memory is the agent's knowledge about pods that the cluster does not have. All of it may be lost.
type memory struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]remembered
}

type remembered struct {
	uid      types.UID
	outdated map[string]plan.Outdated
	unread   map[string]plan.Unread
}

func newMemory() memory {
	return memory{pods: map[types.NamespacedName]remembered{}}
}

// of returns the remembered facts about the pod with this UID.
func (m *memory) of(pod *corev1.Pod) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.pods[client.ObjectKeyFromObject(pod)]; known.uid == pod.UID {
		return known
	}
	return remembered{uid: pod.UID}
}

// remember keeps the knowledge of a plan. The maps are not changed afterwards.
func (m *memory) remember(pod *corev1.Pod, now remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now.uid = pod.UID
	m.pods[client.ObjectKeyFromObject(pod)] = now
}

// Forget removes the remembered facts about a deleted pod.
func (m *memory) Forget(pod types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, pod)
}
