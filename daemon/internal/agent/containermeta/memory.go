package containermeta

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
