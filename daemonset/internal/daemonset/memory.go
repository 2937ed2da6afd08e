package daemonset

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/daemonset/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemonset/internal/eligibility"
)

// The pauses before failed pods of one node are replaced: none for the first, then from the shortest to the longest,
// each twice the one before. A node without failures for twice the longest begins anew.
const (
	shortestPause = time.Second
	longestPause  = 15 * time.Minute
)

// memory remembers between passes what the cluster does not hold: which nodes had a pod, and how often pods failed on
// them. An operator that starts anew begins with what it sees. It is safe for concurrent use.
type memory struct {
	eligible eligibility.Memory

	mu   sync.Mutex
	sets map[types.NamespacedName]*knownSet
}

type knownSet struct {
	uid      types.UID
	revision string
	failures map[string]*failure // by node
	hadPod   map[string]bool     // nodes
}

// failure is how often pods failed on a node.
type failure struct {
	pods  []types.UID // may be replaced
	pause time.Duration
	since time.Time
}

// Forget implements base.Memory.
func (m *memory) Forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.sets[name]; known != nil {
		m.eligible.Forget(known.uid)
		delete(m.sets, name)
	}
}

// of returns what is known of the set. What happened with another revision says nothing of this one.
func (m *memory) of(set *v1beta1.DaemonSet, revision string) *knownSet {
	if m.sets == nil {
		m.sets = map[types.NamespacedName]*knownSet{}
	}
	name := client.ObjectKeyFromObject(set)
	known := m.sets[name]
	if known == nil || known.uid != set.UID {
		if known != nil {
			m.eligible.Forget(known.uid)
		}
		known = &knownSet{uid: set.UID, hadPod: map[string]bool{}}
		m.sets[name] = known
	}
	if known.revision != revision || known.failures == nil {
		known.revision, known.failures = revision, map[string]*failure{}
	}
	return known
}

// retryFailedAt returns for each node with a failed pod that has to wait when it may be replaced. A pod that may be
// replaced now starts the next pause.
func (m *memory) retryFailedAt(set *v1beta1.DaemonSet, revision string, pods []*corev1.Pod, now time.Time) map[string]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(set, revision)
	failed := map[string][]types.UID{}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed && pod.DeletionTimestamp == nil {
			node := eligibility.NodeOf(pod)
			failed[node] = append(failed[node], pod.UID)
		}
	}
	wait := map[string]time.Time{}
	for node, uids := range failed {
		if until := known.failedOn(node, uids, now); until.After(now) {
			wait[node] = until
		}
	}
	for node, f := range known.failures {
		if now.Sub(f.since) > 2*longestPause {
			delete(known.failures, node)
		}
	}
	return wait
}

// failedOn returns until when failed pods of a node wait.
func (s *knownSet) failedOn(node string, pods []types.UID, now time.Time) time.Time {
	f := s.failures[node]
	if f == nil {
		f = &failure{}
		s.failures[node] = f
	}
	if !slices.ContainsFunc(pods, func(uid types.UID) bool { return !slices.Contains(f.pods, uid) }) {
		return now
	}
	if until := f.since.Add(f.pause); until.After(now) {
		return until
	}
	f.pods, f.since, f.pause = pods, now, min(max(2*f.pause, shortestPause), longestPause)
	return now
}

// remember notes the nodes of the pods and returns all nodes that had one. The map belongs to the caller.
func (m *memory) remember(set *v1beta1.DaemonSet, revision string, pods []*corev1.Pod, nodes []*corev1.Node) map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.of(set, revision)
	for _, pod := range pods {
		if node := eligibility.NodeOf(pod); node != "" {
			known.hadPod[node] = true
		}
	}
	present := make(map[string]bool, len(known.hadPod))
	for _, node := range nodes {
		if known.hadPod[node.Name] {
			present[node.Name] = true
		}
	}
	known.hadPod = present
	return maps.Clone(present)
}
