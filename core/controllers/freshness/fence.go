package freshness

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// fencePoll is how often the fence looks at the stores.
	fencePoll = 20 * time.Millisecond
	// fenceGrace is how long a store may take to reach the leader's version by its own events before
	// the fence asks the server what it should hold.
	fenceGrace = time.Second
	// retryAfter is the pause after a request of the gate has failed, and between looks at doubts.
	retryAfter = time.Second
	// doubtAge is how long after its answer was lost a create is taken as not to come any more when
	// the server does not have its object.
	doubtAge = 2 * time.Second
	// pageSize bounds one answer of a live list.
	pageSize = 250
)

// Fence keeps a new leader from planning on stores that do not show yet what earlier leaders wrote. The gates of a
// process share one, so that a store is compared with the server once, however many gates read it.
type Fence struct {
	version func(context.Context) (string, error)

	mu     sync.Mutex
	stores map[toolscache.Store]*fencedStore
}

type fencedStore struct {
	mu      sync.Mutex
	reached bool // the leader's version
}

// NewFence makes a fence. version returns the resourceVersion of the write that made this process leader.
func NewFence(version func(context.Context) (string, error)) *Fence {
	return &Fence{version: version, stores: map[toolscache.Store]*fencedStore{}}
}

// once runs reach until it has succeeded once for the store. Those who ask meanwhile wait for the answer.
func (f *Fence) once(store toolscache.Store, reach func() error) error {
	f.mu.Lock()
	s := f.stores[store]
	if s == nil {
		s = &fencedStore{}
		f.stores[store] = s
	}
	f.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reached {
		return nil
	}
	err := reach()
	s.reached = err == nil
	return err
}

// Start opens the gate once every store has reached the version of the write that made this process
// leader, and then settles doubts until the context ends.
//
// The versions of two kinds are compared here. That holds as long as the API server keeps Leases and
// the cached kinds in one etcd; where it does not, the live list decides for every store that seems
// to lag.
func (g *Gate) Start(ctx context.Context) error {
	for g.options.Fence != nil {
		err := g.reachLeader(ctx)
		if err == nil {
			break
		}
		log.FromContext(ctx).Error(err, "The caches cannot be compared with the server yet")
		if !g.pause(ctx, retryAfter) {
			return nil
		}
	}
	close(g.opened)
	for g.pause(ctx, retryAfter) {
		g.settleDoubts(ctx)
	}
	return nil
}

func (g *Gate) reachLeader(ctx context.Context) error {
	version, err := g.options.Fence.version(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the leader's lease: %w", err)
	}
	deadline := g.options.Clock.Now().Add(fenceGrace)
	for _, s := range g.sources {
		if err := g.options.Fence.once(s.store, func() error { return g.reach(ctx, s, version, deadline) }); err != nil {
			return err
		}
	}
	return nil
}

// reach waits until the store has the version, or from the deadline on until it holds what the server lists.
func (g *Gate) reach(ctx context.Context, s *source, version string, deadline time.Time) error {
	for !atLeast(s.version(), version) {
		if g.options.Clock.Now().After(deadline) {
			return g.complete(ctx, s)
		}
		if !g.pause(ctx, fencePoll) {
			return ctx.Err()
		}
	}
	return nil
}

// complete waits until the store holds what the server lists now.
func (g *Gate) complete(ctx context.Context, s *source) error {
	live, version, err := g.list(ctx, s)
	if err != nil {
		return err
	}
	for !s.holds(live, version) {
		if !g.pause(ctx, fencePoll) {
			return ctx.Err()
		}
	}
	return nil
}

// list reads the versions of all objects of the source from the server, by store key.
func (g *Gate) list(ctx context.Context, s *source) (map[string]string, string, error) {
	live := map[string]string{}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(s.kind.GroupVersion().WithKind(s.kind.Kind + "List"))
	selected := &client.ListOptions{LabelSelector: s.settings.Label, FieldSelector: s.settings.Field, Limit: pageSize}
	for {
		if err := g.options.Live.List(ctx, page, selected); err != nil {
			return nil, "", fmt.Errorf("list %s: %w", s.kind.Kind, err)
		}
		for i := range page.Items {
			live[storeKey(&page.Items[i])] = page.Items[i].ResourceVersion
		}
		if page.Continue == "" {
			return live, page.ResourceVersion, nil
		}
		selected.Continue = page.Continue
	}
}

// holds reports whether the store has every live object in its version or a later one, and no other object that is
// older than the list.
func (s *source) holds(live map[string]string, listed string) bool {
	if atLeast(s.version(), listed) {
		return true
	}
	for key, version := range live {
		if cached := s.get(key); cached == nil || !atLeast(cached.GetResourceVersion(), version) {
			return false
		}
	}
	for _, key := range s.store.ListKeys() {
		if _, alive := live[key]; alive {
			continue
		}
		if cached := s.get(key); cached != nil && !atLeast(cached.GetResourceVersion(), listed) {
			return false
		}
	}
	return true
}

// settleDoubts asks the server for each object that may have been created.
func (g *Gate) settleDoubts(ctx context.Context) {
	for workload, doubts := range g.doubts() {
		for key, d := range doubts {
			found := &metav1.PartialObjectMetadata{}
			found.SetGroupVersionKind(d.source.kind)
			switch err := g.options.Live.Get(ctx, d.name, found); {
			case err == nil:
				g.Written(workload, found)
			case apierrors.IsNotFound(err):
				g.dropDoubt(workload, key, d)
			default:
				log.FromContext(ctx).Error(err, "It stays in doubt whether an object was created", "object", d.name)
			}
		}
	}
}

// doubts returns a copy of the doubts that are old enough to be settled.
func (g *Gate) doubts() map[types.NamespacedName]map[string]doubt {
	g.mu.Lock()
	defer g.mu.Unlock()
	old := map[types.NamespacedName]map[string]doubt{}
	for workload, all := range g.waiting {
		for key, d := range all.doubted {
			if g.options.Clock.Since(d.since) < doubtAge {
				continue
			}
			if old[workload] == nil {
				old[workload] = map[string]doubt{}
			}
			old[workload][key] = d
		}
	}
	return old
}

func (g *Gate) dropDoubt(workload types.NamespacedName, key string, d doubt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if all := g.waiting[workload]; all != nil && all.doubted[key] == d {
		delete(all.doubted, key)
	}
}

// pause sleeps and reports whether to go on.
func (g *Gate) pause(ctx context.Context, d time.Duration) bool {
	timer := g.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
