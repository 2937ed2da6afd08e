package containerrestart

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// memory is the agent's knowledge about requests that the cluster does not have: when it first saw the grace of a request,
// which requests may have begun, and the completed ones whose stops are under way. All of it may be lost: then a pass waits
// longer or reads a request once more.
type memory struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]*pod
}

// pod is the memory of one pod, by the UIDs of requests.
type pod struct {
	graceSeen  map[types.UID]time.Time
	maybeBegun map[types.UID]bool // whether the write of their state succeeded is unknown
	completed  map[types.UID]*v1beta1.ContainerRecreateRequest
}

// of returns the memory of a pod. The lock is held.
func (m *memory) of(key types.NamespacedName) *pod {
	if m.pods[key] == nil {
		m.pods[key] = &pod{
			graceSeen:  map[types.UID]time.Time{},
			maybeBegun: map[types.UID]bool{},
			completed:  map[types.UID]*v1beta1.ContainerRecreateRequest{},
		}
	}
	return m.pods[key]
}

// remember updates the memory of a pod from the requests of the snapshot, and copies it into the snapshot.
func (m *memory) remember(key types.NamespacedName, s *node.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	live := make(map[types.UID]bool, len(s.Requests))
	for _, request := range s.Requests {
		live[request.UID] = true
		if _, seen := p.graceSeen[request.UID]; !graceBegan(request) {
			delete(p.graceSeen, request.UID)
		} else if !seen {
			p.graceSeen[request.UID] = s.Now
		}
	}
	gone := func(request types.UID) bool { return !live[request] }
	maps.DeleteFunc(p.graceSeen, func(request types.UID, _ time.Time) bool { return gone(request) })
	maps.DeleteFunc(p.maybeBegun, func(request types.UID, _ bool) bool { return gone(request) })
	maps.DeleteFunc(p.completed, func(request types.UID, _ *v1beta1.ContainerRecreateRequest) bool { return gone(request) })
	s.GraceSeen, s.Begun = maps.Clone(p.graceSeen), maps.Clone(p.maybeBegun)
}

// completed returns a completed request as it was last read from the server; nil if it was not read.
func (m *memory) completed(key types.NamespacedName, request types.UID) *v1beta1.ContainerRecreateRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[key]; p != nil {
		return p.completed[request]
	}
	return nil
}

// setCompleted stores a request that has completed, as read from the server.
func (m *memory) setCompleted(key types.NamespacedName, request *v1beta1.ContainerRecreateRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(key).completed[request.UID] = request
}

// dropStale removes the stored copies of completed requests that have changed.
func (m *memory) dropStale(key types.NamespacedName, done *progress.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range done.Outcomes {
		if r := &done.Outcomes[i]; r.State == progress.Stale {
			delete(m.of(key).completed, r.Action.Object.GetUID())
		}
	}
}

// addMaybeBegun stores that requests may have begun.
func (m *memory) addMaybeBegun(key types.NamespacedName, requests []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, request := range requests {
		m.of(key).maybeBegun[request] = true
	}
}

// Forget drops the facts about a pod without requests and stops.
func (m *memory) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, key)
}

// stagesOf returns how far stops are, as a plan reads it.
func stagesOf(all map[string]stops.Stop) map[string]node.Stop {
	stages := make(map[string]node.Stop, len(all))
	for id, stop := range all {
		stages[id] = stop.Stop
	}
	return stages
}
