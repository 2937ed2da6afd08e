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

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containermeta/plan"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

const (
	stopReason = "Metadata"
	// stopsAtATime bounds how many containers are being stopped.
	stopsAtATime = 10
	defaultGrace = 30 * time.Second

	// settle lets the events of one change come together.
	settle = time.Second
	// firstReports is the time within which pods that were there before the agent are reported.
	firstReports = 2 * time.Minute
)

// events tell which pods need a pass: a change of what the cache keeps of a pod, not every heartbeat.
func (r *reconciler) events() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	add := func(q queue, object client.Object, after time.Duration) {
		if pod, ok := object.(*corev1.Pod); ok && plan.Reports(pod) {
			q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pod)}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			_, reported := e.Object.GetAnnotations()[contract.RuntimeContainersMetaAnnotation]
			if reported || !e.IsInInitialList {
				add(q, e.Object, settle)
			} else {
				add(q, e.Object, settle+r.config.Spread(firstReports))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, _ := e.ObjectOld.(*corev1.Pod)
			after, _ := e.ObjectNew.(*corev1.Pod)
			if before == nil || after == nil || !same(before, after) {
				add(q, e.ObjectNew, settle)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object, 0) },
	}
}

// same reports whether of what the cache keeps only the version has changed.
func same(a, b *corev1.Pod) bool {
	return a.UID == b.UID && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec) && equality.Semantic.DeepEqual(a.Status, b.Status)
}

// graceOf returns the time that the kubelet would give the container.
func graceOf(c *cri.Container) time.Duration {
	for _, seconds := range []*int64{c.DeletionGracePeriod, c.TerminationGracePeriod} {
		if seconds != nil {
			return time.Duration(*seconds) * time.Second
		}
	}
	return defaultGrace
}

// memory is what is known beside the cluster. All of it may be lost.
type memory struct {
	mu       sync.Mutex
	pods     map[types.NamespacedName]remembered
	stopping map[string]bool // by container ID
	closed   bool
	group    sync.WaitGroup
	slots    chan struct{}
}

type remembered struct {
	uid      types.UID
	outdated map[string]plan.Outdated
}

func newMemory() memory {
	return memory{
		pods: map[types.NamespacedName]remembered{}, stopping: map[string]bool{}, slots: make(chan struct{}, stopsAtATime),
	}
}

// outdated returns what is known of the very pod.
func (m *memory) outdated(pod *corev1.Pod) map[string]plan.Outdated {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.pods[client.ObjectKeyFromObject(pod)]; known.uid == pod.UID {
		return known.outdated
	}
	return nil
}

// remember keeps what is outdated. The map is not changed afterwards.
func (m *memory) remember(pod *corev1.Pod, outdated map[string]plan.Outdated) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[client.ObjectKeyFromObject(pod)] = remembered{uid: pod.UID, outdated: outdated}
}

// Forget drops what is known of a pod that is gone.
func (m *memory) Forget(pod types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, pod)
}

// stop runs the stop of a container, unless one is under way.
func (m *memory) stop(id string, run func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.stopping[id] {
		return
	}
	m.stopping[id] = true
	m.group.Go(func() {
		m.slots <- struct{}{}
		if !m.isClosed() {
			run()
		}
		<-m.slots
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.stopping, id)
	})
}

func (m *memory) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// wait lets no stop begin any more and returns when those under way have ended.
func (m *memory) wait() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.group.Wait()
}
