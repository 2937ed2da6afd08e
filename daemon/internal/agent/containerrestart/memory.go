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

// memory is what the agent knows beside the cluster: the stops that it has begun, when it saw what, and which
// requests may have begun. All of it may be lost: then a pass waits longer or stops what still runs once more.
type memory struct {
	mu     sync.Mutex
	pods   map[types.NamespacedName]*pod
	closed bool
	group  sync.WaitGroup
}

// pod is the memory of one pod.
type pod struct {
	graceSeen map[types.UID]time.Time
	stops     map[string]*stop   // by container ID
	begun     map[types.UID]bool // requests that may have begun: nobody knows what became of the write that says so
}

type stop struct {
	node.Stop
	name   types.NamespacedName // of the request
	over   *v1beta1.ContainerRecreateRequest
	took   time.Duration // by the hook
	cancel context.CancelFunc
}

// of returns the memory of a pod. The lock is held.
func (m *memory) of(key types.NamespacedName) *pod {
	if m.pods[key] == nil {
		m.pods[key] = &pod{
			graceSeen: map[types.UID]time.Time{}, stops: map[string]*stop{}, begun: map[types.UID]bool{},
		}
	}
	return m.pods[key]
}

// remember brings the memory of a pod in step with the snapshot's requests and puts copies of it into the snapshot.
func (m *memory) remember(key types.NamespacedName, s *node.Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	live := make(map[types.UID]bool, len(s.Requests))
	for _, request := range s.Requests {
		live[request.UID] = true
		if _, seen := p.graceSeen[request.UID]; !seen && graceBegan(request) {
			p.graceSeen[request.UID] = s.Now
		}
	}
	gone := func(request types.UID) bool { return !live[request] }
	maps.DeleteFunc(p.graceSeen, func(request types.UID, _ time.Time) bool { return gone(request) })
	maps.DeleteFunc(p.begun, func(request types.UID, _ bool) bool { return gone(request) })
	stops := make(map[string]node.Stop, len(p.stops))
	for id, stop := range p.stops {
		if len(s.Requests) == 0 && stop.Stage == node.Ended {
			delete(p.stops, id)
			continue
		}
		stops[id] = stop.Stop
	}
	s.GraceSeen, s.Begun, s.Stops = maps.Clone(p.graceSeen), maps.Clone(p.begun), stops
}

// asked is a request that has asked for a stop.
type asked struct {
	name types.NamespacedName
	over *v1beta1.ContainerRecreateRequest // as last read from the server, nil when it was not
}

// stopping returns the requests, by UID, of stops that the runtime was not told of yet.
func (m *memory) stopping(key types.NamespacedName) map[types.UID]asked {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[types.UID]asked{}
	if p := m.pods[key]; p != nil {
		for _, s := range p.stops {
			if s.Stage == node.InHook || s.Stage == node.AfterHook {
				all[s.Request] = asked{name: s.name, over: s.over}
			}
		}
	}
	return all
}

// keep notes a request that is over, as the server has it.
func (m *memory) keep(key types.NamespacedName, request *v1beta1.ContainerRecreateRequest) {
	m.setOver(key, request.UID, request)
}

// outdated drops of the requests that are over those that have changed.
func (m *memory) outdated(key types.NamespacedName, done *progress.Result) {
	for i := range done.Outcomes {
		if r := &done.Outcomes[i]; r.State == progress.Stale {
			m.setOver(key, r.Action.Object.GetUID(), nil)
		}
	}
}

// doubt notes requests that may have begun.
func (m *memory) doubt(key types.NamespacedName, requests []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, request := range requests {
		m.of(key).begun[request] = true
	}
}

// Forget drops what is known of a pod without requests and stops.
func (m *memory) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[key]; p != nil && len(p.stops) == 0 {
		delete(m.pods, key)
	}
}

func (m *memory) setOver(key types.NamespacedName, uid types.UID, request *v1beta1.ContainerRecreateRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[key]; p != nil {
		for _, s := range p.stops {
			if s.Request == uid {
				s.over = request
			}
		}
	}
}

// abort gives up stops that the runtime has not been told of.
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

// hookTook returns how much of the grace the hook of a stop took that this process has run.
func (m *memory) hookTook(key types.NamespacedName, kill *node.Kill) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(key).stops[kill.ContainerID]
	if s == nil || s.Stage != node.AfterHook || s.Request != kill.Request.UID {
		return 0, false
	}
	return s.took, true
}

// begin notes that a stop reaches a stage and does its work beside the passes. It does nothing when the agent is
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

// hooked notes that a hook is over. A stop that was given up meanwhile, or whose runtime is away, is forgotten,
// so that it can be tried again.
func (m *memory) hooked(key types.NamespacedName, id string, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	if err != nil {
		delete(p.stops, id)
		return
	}
	p.stops[id].Stage, p.stops[id].took = node.AfterHook, took
}

// ended notes how a stop ended. One that never reached the runtime is forgotten, so that it can be tried
// again.
func (m *memory) ended(key types.NamespacedName, id string, err error, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	if errors.Is(err, containerstop.ErrAborted) || cri.IsAway(err) {
		delete(p.stops, id)
		return
	}
	s := p.stops[id]
	s.Stage, s.Err, s.At = node.Ended, err, now
}

// wait lets no stop begin any more and returns when those under way have ended.
func (m *memory) wait() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.group.Wait()
}
