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
	// fencePoll is how often the fence checks the stores.
	fencePoll = 20 * time.Millisecond
	// fenceDelay is how long a store may take to reach the leader's version by watch events before the fence lists the
	// objects from the server.
	fenceDelay = time.Second
	// retryAfter is the pause after a failed request of the tracker, and between checks of uncertain writes.
	retryAfter = time.Second
	// uncertainAge is how long after a write with a lost answer the server is asked for its outcome: until then the write
	// may be on its way.
	uncertainAge = 2 * time.Second
	// pageSize bounds one answer of a live list.
	pageSize = 250
)

// Fence is the leader fence: it keeps a new leader from planning on stores that do not show the writes of earlier leaders
// yet. The trackers of a process share one, so that a store is compared with the server once, however many trackers use
// it.
type Fence struct {
	version func(context.Context) (string, error)

	mu     sync.Mutex
	stores map[toolscache.Store]*fencedStore
}

type fencedStore struct {
	mu      sync.Mutex
	reached bool // the leader's version
}

// NewFence returns a fence. version returns the resourceVersion of the write that made this process leader.
func NewFence(version func(context.Context) (string, error)) *Fence {
	return &Fence{version: version, stores: map[toolscache.Store]*fencedStore{}}
}

// once runs reach until it has succeeded once for the store. Concurrent callers wait for the result.
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

// Start lets passes run once every store has reached the version of the write that made this process leader, and then
// resolves uncertain writes until the context ends.
//
// It compares the resourceVersions of two kinds. That is valid as long as the API server keeps Leases and the cached
// kinds in one etcd; otherwise the live list decides for every store that seems to lag.
func (t *Tracker) Start(ctx context.Context) error {
	for t.options.Fence != nil {
		err := t.reachLeader(ctx)
		if err == nil {
			break
		}
		log.FromContext(ctx).Error(err, "Failed to compare the caches with the server, trying again")
		if !t.pause(ctx, retryAfter) {
			return nil
		}
	}
	close(t.fencePassed)
	for t.pause(ctx, retryAfter) {
		for _, s := range t.sources {
			s.outstanding() // drops writes that are no longer outstanding
		}
		t.resolveUncertain(ctx)
	}
	return nil
}

func (t *Tracker) reachLeader(ctx context.Context) error {
	version, err := t.options.Fence.version(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the leader's lease: %w", err)
	}
	deadline := t.options.Clock.Now().Add(fenceDelay)
	for _, s := range t.sources {
		if err := t.options.Fence.once(s.store, func() error { return t.reach(ctx, s, version, deadline) }); err != nil {
			return err
		}
	}
	return nil
}

// reach waits until the store has the version or, after the deadline, until it holds the objects that the server lists.
func (t *Tracker) reach(ctx context.Context, s *source, version string, deadline time.Time) error {
	for !atLeast(s.version(), version) {
		if t.options.Clock.Now().After(deadline) {
			return t.complete(ctx, s)
		}
		if !t.pause(ctx, fencePoll) {
			return ctx.Err()
		}
	}
	return nil
}

// complete waits until the store holds the objects that the server lists.
func (t *Tracker) complete(ctx context.Context, s *source) error {
	live, version, err := t.list(ctx, s)
	if err != nil {
		return err
	}
	for !s.holds(live, version) {
		if !t.pause(ctx, fencePoll) {
			return ctx.Err()
		}
	}
	return nil
}

// keeper is a store that keeps not all of the objects that its settings select.
type keeper interface{ Keeps(o metav1.Object) bool }

// list reads the versions of all objects of the source from the server, by store key.
func (t *Tracker) list(ctx context.Context, s *source) (map[string]string, string, error) {
	live := map[string]string{}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(s.kind.GroupVersion().WithKind(s.kind.Kind + "List"))
	selected := &client.ListOptions{
		LabelSelector: s.settings.Label,
		FieldSelector: s.settings.Field,
		Limit:         pageSize,
	}
	if s.settings.Field != nil { // the cache asks for that namespace, too, and may not ask for more
		selected.Namespace, _ = s.settings.Field.RequiresExactMatch("metadata.namespace")
	}
	part, isPart := s.store.(keeper)
	for {
		if err := t.options.Live.List(ctx, page, selected); err != nil {
			return nil, "", fmt.Errorf("list %s: %w", s.kind.Kind, err)
		}
		for i := range page.Items {
			if !isPart || part.Keeps(&page.Items[i]) {
				live[storeKey(&page.Items[i])] = page.Items[i].ResourceVersion
			}
		}
		if page.Continue == "" {
			return live, page.ResourceVersion, nil
		}
		selected.Continue = page.Continue
	}
}

// holds reports whether the store has every listed object in its version or a later one, and no other object that is
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

// resolveUncertain asks the server for each object that may have been written. The tracker then waits for the version
// that the server has.
func (t *Tracker) resolveUncertain(ctx context.Context) {
	for workload, doubts := range t.uncertainWrites() {
		for key, d := range doubts {
			found := &metav1.PartialObjectMetadata{}
			found.SetGroupVersionKind(d.source.kind)
			switch err := t.options.Live.Get(ctx, d.name, found); {
			case err == nil:
				t.Written(workload, found)
			case apierrors.IsNotFound(err):
				t.resolveMissing(workload, key, d)
			default:
				log.FromContext(ctx).Error(err, "The result of a write is still unknown", "object", d.name)
			}
		}
	}
}

// uncertainWrites returns a copy of the uncertain writes that are old enough to be resolved.
func (t *Tracker) uncertainWrites() map[types.NamespacedName]map[string]uncertainWrite {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := map[types.NamespacedName]map[string]uncertainWrite{}
	for workload, all := range t.waiting {
		for key, d := range all.uncertain {
			if t.options.Clock.Since(d.since) < uncertainAge {
				continue
			}
			if old[workload] == nil {
				old[workload] = map[string]uncertainWrite{}
			}
			old[workload][key] = d
		}
	}
	return old
}

// resolveMissing takes the object as not created, or as deleted if it was there before.
func (t *Tracker) resolveMissing(workload types.NamespacedName, key string, d uncertainWrite) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting[workload]
	if all == nil || all.uncertain[key] != d {
		return
	}
	delete(all.uncertain, key)
	if d.version != "" {
		all.byUID[d.uid] = write{source: d.source, key: key, deleted: true}
	}
}

// pause sleeps and reports whether to continue.
func (t *Tracker) pause(ctx context.Context, d time.Duration) bool {
	timer := t.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}
