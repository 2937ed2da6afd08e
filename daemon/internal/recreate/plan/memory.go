package plan

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/memory"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Memory holds the observations of this process about requests that are not over, with times by its own clock. It may be
// lost: then silent agents are waited for again. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	requests memory.Objects[*sighting]
	pods     map[types.UID]*podSighting
}

type sighting struct {
	first time.Time
	sign  string
	pod   types.UID
}

// podSighting is the shared observation of all requests for one pod. An agent that works on one of them is alive for
// those that wait.
type podSighting struct {
	lastSign time.Time
	requests int
}

// NewMemory makes an empty memory.
func NewMemory() *Memory {
	m := &Memory{pods: map[types.UID]*podSighting{}}
	m.requests.Ended = m.ended
	return m
}

// See notes a look at a request. It returns when the first one was, and when an agent's writing was last new in
// a request for the pod, which counts as if it was so at the first look.
func (m *Memory) See(r *v1beta1.ContainerRecreateRequest, now time.Time) (first, lastSign time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, sign := memory.KeyOf(r), signOfLife(r)
	s, ok := m.requests.Get(key)
	if !ok {
		s = &sighting{
			first: now,
			sign:  sign,
			pod:   types.UID(r.Labels[v1beta1.PodUIDLabel]),
		}
		m.requests.Set(key, s)
		if m.pods[s.pod] == nil {
			m.pods[s.pod] = &podSighting{}
		}
		m.pods[s.pod].requests++
	}
	pod := m.pods[s.pod]
	if s.sign != sign {
		s.sign, pod.lastSign = sign, now
	}
	if pod.lastSign.After(s.first) {
		return s.first, pod.lastSign
	}
	return s.first, s.first
}

// Forget drops the observations about a request that is over.
func (m *Memory) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests.Forget(key)
}

// ended counts a request that is over. The lock is held.
func (m *Memory) ended(_ memory.Key, s *sighting) {
	if pod := m.pods[s.pod]; pod.requests > 1 {
		pod.requests--
	} else {
		delete(m.pods, s.pod)
	}
}

// signOfLife returns the fields that agents write into a request. Agents are silent as long as it stays the same.
func signOfLife(r *v1beta1.ContainerRecreateRequest) string {
	return fmt.Sprint(r.Status.LastHeartbeatTime, r.Status.Phase, r.Status.ContainerRecreateStates)
}
