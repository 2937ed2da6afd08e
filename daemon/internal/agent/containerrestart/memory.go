package containerrestart

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

// memory is the agent's knowledge that the cluster does not have: the stops that it has begun, when it first saw the grace
// of a request, and which requests may have begun. All of it may be lost: then a pass waits longer or stops a running
// container once more.
type memory struct {
	mu     sync.Mutex
	pods   map[types.NamespacedName]*pod
	closed bool
	group  sync.WaitGroup
}

// pod is the memory of one pod.
type pod struct {
	graceSeen  map[types.UID]time.Time
	stops      map[string]*stop   // by container ID
	maybeBegun map[types.UID]bool // requests that may have begun: whether the write of their state succeeded is unknown
}

type stop struct {
	node.Stop
	name      types.NamespacedName // of the request
	completed *v1beta1.ContainerRecreateRequest
	hookTook  time.Duration // by the hook
	cancel    context.CancelFunc
}

// of returns the memory of a pod. The lock is held.
func (m *memory) of(key types.NamespacedName) *pod {
	if m.pods[key] == nil {
		m.pods[key] = &pod{
			graceSeen: map[types.UID]time.Time{}, stops: map[string]*stop{}, maybeBegun: map[types.UID]bool{},
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
	stops := make(map[string]node.Stop, len(p.stops))
	for id, stop := range p.stops {
		if len(s.Requests) == 0 && stop.Stage == node.Ended {
			delete(p.stops, id)
			continue
		}
		stops[id] = stop.Stop
	}
	s.GraceSeen, s.Begun, s.Stops = maps.Clone(p.graceSeen), maps.Clone(p.maybeBegun), stops
}

// stoppingRequest is a request with a stop under way.
type stoppingRequest struct {
	name      types.NamespacedName
	completed *v1beta1.ContainerRecreateRequest // as last read from the server; nil if it was not read
}

// stopping returns the requests, by UID, of stops that were not sent to the runtime yet.
func (m *memory) stopping(key types.NamespacedName) map[types.UID]stoppingRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[types.UID]stoppingRequest{}
	if p := m.pods[key]; p != nil {
		for _, s := range p.stops {
			if s.Stage == node.InHook || s.Stage == node.AfterHook {
				all[s.Request] = stoppingRequest{name: s.name, completed: s.completed}
			}
		}
	}
	return all
}

// setCompleted stores a request that has completed, as read from the server.
func (m *memory) setCompleted(key types.NamespacedName, request *v1beta1.ContainerRecreateRequest) {
	m.setRequest(key, request.UID, request)
}

// dropStale removes the stored copies of completed requests that have changed.
func (m *memory) dropStale(key types.NamespacedName, done *progress.Result) {
	for i := range done.Outcomes {
		if r := &done.Outcomes[i]; r.State == progress.Stale {
			m.setRequest(key, r.Action.Object.GetUID(), nil)
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
	if p := m.pods[key]; p != nil && len(p.stops) == 0 {
		delete(m.pods, key)
	}
}

func (m *memory) setRequest(key types.NamespacedName, uid types.UID, request *v1beta1.ContainerRecreateRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[key]; p != nil {
		for _, s := range p.stops {
			if s.Request == uid {
				s.completed = request
			}
		}
	}
}

// abort cancels stops that were not sent to the runtime yet.
func (m *memory) abort(key types.NamespacedName, ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		s := m.of(key).stops[id]
		switch {
		case s == nil:
		case s.Stage == node.InHook:
			s.cancel()
		case s.Stage == node.AfterHook:
			delete(m.of(key).stops, id)
		}
	}
}

// hookTook returns how much of the grace the hook took, if this process ran it.
func (m *memory) hookTook(key types.NamespacedName, kill *node.Kill) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(key).stops[kill.ContainerID]
	if s == nil || s.Stage != node.AfterHook || s.Request != kill.Request.UID {
		return 0, false
	}
	return s.hookTook, true
}

// begin notes that a stop reaches a stage and does its work in parallel to the passes. It does nothing when the agent is
// about to end, unless the stop is under way, when the container is being stopped already, and when this request
// has had its try.
func (m *memory) begin(ctx context.Context, key types.NamespacedName, kill *node.Kill, stage node.Stage, work func(context.Context)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	s := p.stops[kill.ContainerID]
	mine := s != nil && s.Request == kill.Request.UID
	goesOn := mine && s.Stage == node.AfterHook && stage == node.Told
	if !goesOn && (m.closed || s != nil && (mine || s.Stage != node.Ended)) {
		return
	}
	// The stop outlasts the pass, and the agent's own end as long as its grace period allows.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.stops[kill.ContainerID] = &stop{
		Stop: node.Stop{Request: kill.Request.UID, Stage: stage}, name: client.ObjectKeyFromObject(kill.Request), cancel: cancel,
	}
	m.group.Go(func() {
		defer cancel()
		work(ctx)
	})
}

// hookEnded stores that a hook has ended. A stop is removed if it was aborted or if its runtime is unavailable,
// so that it can be tried again.
func (m *memory) hookEnded(key types.NamespacedName, id string, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	if err != nil {
		delete(p.stops, id)
		return
	}
	p.stops[id].Stage, p.stops[id].hookTook = node.AfterHook, took
}

// stopEnded stores how a stop ended. A stop that never reached the runtime is removed, so that it can be tried
// again, and one that the runtime has not answered in time: the next pass sees whether the container has ended.
func (m *memory) stopEnded(key types.NamespacedName, id string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	if errors.Is(err, containerstop.ErrAborted) || cri.IsUnavailable(err) || cri.IsLate(err) {
		delete(p.stops, id)
		return
	}
	s := p.stops[id]
	s.Stage, s.Err, s.At = node.Ended, err, now
}

// wait prevents new stops and returns when those under way have ended.
func (m *memory) wait() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.group.Wait()
}
