package memory

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/pods/eligibility"
	"github.com/flotilla-project/flotilla/core/workloads/failures"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
)

// Memory holds the known facts about all sets. The zero value is ready for use. It is safe for concurrent use.
type Memory struct {
	// Eligible are the verdicts on nodes.
	Eligible eligibility.Memory

	failures failures.Memory

	mu   sync.Mutex
	sets memory.Objects[*knownSet]
}

// Seen holds the objects of a set that a pass sees.
type Seen struct {
	// Set is the DaemonSet.
	Set *v1beta1.DaemonSet
	// Revision names the update revision; empty before there is one.
	Revision string
	// Pods are its pods, Nodes all nodes of the cluster, and Now is the moment of the pass.
	Pods  []*corev1.Pod
	Nodes []*corev1.Node
	Now   time.Time
	// FirstPodsWait is true if nodes may have to wait for their first pod, so that it matters which had one.
	FirstPodsWait bool
}

// Facts are the further facts that a plan needs.
type Facts struct {
	// Verdicts are those on the nodes, in their order.
	Verdicts []eligibility.Verdict
	// RetryFailedAt is when a failed pod may be replaced, by node. A node without an entry need not wait.
	RetryFailedAt map[string]time.Time
	// HadPod has the nodes that have a pod or had one, where that matters. The map belongs to the caller.
	HadPod map[string]bool
	// UnreadySince is since when nodes have not been ready. The map belongs to the caller.
	UnreadySince map[string]time.Time
	// Strays are the pods that belong to no node and were not seen before.
	Strays []*corev1.Pod
}

// knownSet holds the known facts about one set.
type knownSet struct {
	hadPod  map[string]bool         // nodes; nil before it matters
	unready map[types.UID]time.Time // nodes, and since when
	strays  map[types.UID]bool      // pods
}

// Recall notes the objects that a pass sees and returns the facts. A pod that may be replaced now starts the next
// pause of its node.
func (m *Memory) Recall(seen Seen) Facts {
	facts := Facts{
		Verdicts:      m.Eligible.Verdicts(seen.Set, &seen.Set.Spec.Template, seen.Nodes),
		RetryFailedAt: m.failures.RetryAt(seen.Set, seen.Revision, seen.Pods, eligibility.NodeOf, seen.Now),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(seen.Set)
	if seen.FirstPodsWait {
		known.notePods(seen, facts.Verdicts)
	} else {
		known.hadPod = nil
	}
	facts.HadPod = maps.Clone(known.hadPod)
	facts.UnreadySince = known.noteUnready(seen.Nodes)
	facts.Strays = known.noteStrays(seen.Pods)
	return facts
}

// Forget drops a set that is gone.
func (m *Memory) Forget(name types.NamespacedName) {
	m.failures.Forget(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets.Forget(name)
}

// of returns the known facts about the set.
func (m *Memory) of(set *v1beta1.DaemonSet) *knownSet {
	m.sets.Ended = func(of memory.Key, _ *knownSet) { m.Eligible.Forget(of.UID) }
	known, ok := m.sets.Get(memory.KeyOf(set))
	if !ok {
		known = &knownSet{}
		m.sets.Set(memory.KeyOf(set), known)
	}
	return known
}
