package sidecarterminator

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// memory is what was told about pods, so that each thing is told once. A process that starts anew tells it again.
type memory struct {
	mu   sync.Mutex
	told map[types.NamespacedName]map[sentence]bool
}

type sentence struct {
	pod          types.UID
	reason, note string
}

// before reports whether the notice was told about the pod before, and remembers that it is now.
func (m *memory) before(pod *corev1.Pod, n action.Notice) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, what := client.ObjectKeyFromObject(pod), sentence{pod.UID, n.Reason, n.Note}
	if m.told[key][what] {
		return true
	}
	if m.told == nil {
		m.told = map[types.NamespacedName]map[sentence]bool{}
	}
	if m.told[key] == nil {
		m.told[key] = map[sentence]bool{}
	}
	m.told[key][what] = true
	return false
}

// Forget implements base.Memory.
func (m *memory) Forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.told, name)
}
