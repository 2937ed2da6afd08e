package containerrestart

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/node"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
)

// memory is what the agent knows beside the cluster: the stops that it has begun, when it saw what, and what
// it wrote. All of it may be lost: then a pass waits longer or stops what still runs once more.
type memory struct {
	mu     sync.Mutex
	pods   map[ctrl.Request]*pod
	closed bool
	group  sync.WaitGroup
}

// pod is the memory of one pod.
type pod struct {
	graceSeen map[types.UID]time.Time
	stops     map[string]*stop // by container ID
	written   map[types.UID]string
}

type stop struct {
	node.Stop
	cancel context.CancelFunc
}

// of returns the memory of a pod. The lock is held.
func (m *memory) of(key ctrl.Request) *pod {
	if m.pods[key] == nil {
		m.pods[key] = &pod{graceSeen: map[types.UID]time.Time{}, stops: map[string]*stop{}, written: map[types.UID]string{}}
	}
	return m.pods[key]
}

// ahead says whether a request is older here than what we wrote.
func (m *memory) ahead(requests []*v1beta1.ContainerRecreateRequest) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(requests, func(request *v1beta1.ContainerRecreateRequest) bool {
		known := m.pods[keyOf(request)]
		if known == nil || known.written[request.UID] == "" {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(request.ResourceVersion, known.written[request.UID])
		return err == nil && order < 0
	})
}

// wrote notes the version of a write.
func (m *memory) wrote(request *v1beta1.ContainerRecreateRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of(keyOf(request)).written[request.UID] = request.ResourceVersion
}

// remember brings the memory of a pod in step with its requests and returns copies of it.
func (m *memory) remember(key ctrl.Request, requests []*v1beta1.ContainerRecreateRequest, now time.Time) (map[types.UID]time.Time, map[string]node.Stop) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	live := make(map[types.UID]bool, len(requests))
	for _, request := range requests {
		live[request.UID] = true
		if _, seen := p.graceSeen[request.UID]; !seen && graceBegan(request) {
			p.graceSeen[request.UID] = now
		}
	}
	gone := func(request types.UID) bool { return !live[request] }
	maps.DeleteFunc(p.graceSeen, func(request types.UID, _ time.Time) bool { return gone(request) })
	maps.DeleteFunc(p.written, func(request types.UID, _ string) bool { return gone(request) })
	stops := make(map[string]node.Stop, len(p.stops))
	for id, s := range p.stops {
		if len(requests) == 0 && s.Ended {
			delete(p.stops, id)
			continue
		}
		stops[id] = s.Stop
	}
	if len(requests) == 0 && len(p.stops) == 0 {
		delete(m.pods, key)
	}
	return maps.Clone(p.graceSeen), stops
}

// abort gives up stops that the runtime has not been told of.
func (m *memory) abort(key ctrl.Request, ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if s := m.of(key).stops[id]; s != nil && !s.Ended {
			s.cancel()
		}
	}
}

// begin notes a stop before it begins and returns the context that it runs in. It reports false when the
// agent is about to end, when the container is being stopped already, and when this request has had its try.
func (m *memory) begin(ctx context.Context, key ctrl.Request, kill *node.Kill) (context.Context, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	if s := p.stops[kill.ContainerID]; m.closed || s != nil && (!s.Ended || s.Request == kill.Request.UID) {
		return nil, false
	}
	// The stop outlasts the pass, and the agent's own end as long as its grace period allows.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.stops[kill.ContainerID] = &stop{Stop: node.Stop{Request: kill.Request.UID}, cancel: cancel}
	m.group.Add(1)
	return ctx, true
}

// ended notes how a stop ended. One that never reached the runtime is forgotten, so that it can be tried
// again.
func (m *memory) ended(key ctrl.Request, id string, err error, now time.Time) {
	defer m.group.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(key)
	s := p.stops[id]
	s.cancel()
	if errors.Is(err, containerstop.ErrAborted) || cri.IsAway(err) {
		delete(p.stops, id)
		return
	}
	s.Ended, s.Err, s.At = true, err, now
}

// wait lets no stop begin any more and returns when those under way have ended.
func (m *memory) wait() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.group.Wait()
}
