package sidecarterminator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
)

// told has the notices sent about pods, so that each notice is sent once. A process that starts again sends it again.
type told struct {
	pods memory.Objects[map[sentence]bool]
}

type sentence struct{ reason, note string }

// before reports whether the notice about the pod was sent before, and remembers it from now on.
func (m *told) before(pod *corev1.Pod, n action.Notice) bool {
	what := sentence{n.Reason, n.Note}
	before := false
	m.pods.Change(memory.KeyOf(pod), func(said map[sentence]bool) (map[sentence]bool, bool) {
		if said == nil {
			said = map[sentence]bool{}
		}
		before, said[what] = said[what], true
		return said, true
	})
	return before
}

// Forget implements pass.Memory.
func (m *told) Forget(name types.NamespacedName) { m.pods.Forget(name) }
