package freshness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// closedWait is the wait for a gate that has not opened as long as the caller could stay.
	closedWait = 100 * time.Millisecond
	// minWait and maxWait bound the wait for outstanding writes. It is as long as they have been
	// outstanding already: the event of the write usually wakes the workload first, so the wait is a
	// net for events that nobody watches, such as that of our own status write.
	minWait = 20 * time.Millisecond
	maxWait = time.Second
)

// Options say what a gate looks at.
type Options struct {
	// Cache is the cache that plans read.
	Cache cache.Cache
	// Scheme knows the kinds.
	Scheme *runtime.Scheme
	// Kinds are the kinds whose writes are waited for, each with its settings in the cache, of which
	// the label and field selectors matter. Writes to other kinds are not recorded.
	Kinds map[client.Object]cache.ByObject
	// Live reads from the server.
	Live client.Reader
	// Clock tells the time and ticks.
	Clock clock.WithTicker
	// Fence is that of the process. Nil lets the gate open at once, for a process without predecessors.
	Fence *Fence
}

// Gate knows the outstanding writes of one controller. It is closed until Start has run; a manager
// starts it once it leads. It is safe for concurrent use.
type Gate struct {
	options Options
	sources map[schema.GroupKind]*source
	opened  chan struct{} // closed by Start

	mu      sync.Mutex
	waiting map[types.NamespacedName]*writes
}

// writes are the outstanding writes of one workload.
type writes struct {
	since   time.Time
	byUID   map[types.UID]write
	doubted map[string]doubt
}

// New makes a gate. It fails when the cache has several informers for one kind, as one of several
// named namespaces has (a field selector on metadata.namespace restricts it to one namespace with
// one informer), and when client-go's feature AtomicFIFO is off: then stores tell no version.
func New(ctx context.Context, o Options) (*Gate, error) {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.AtomicFIFO) {
		return nil, errors.New("client-go's feature AtomicFIFO is off: the cache tells no resourceVersion")
	}
	g := &Gate{options: o, opened: make(chan struct{}), sources: map[schema.GroupKind]*source{}, waiting: map[types.NamespacedName]*writes{}}
	for kind, settings := range o.Kinds {
		gvk, err := apiutil.GVKForObject(kind, o.Scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", kind, err)
		}
		s, err := newSource(ctx, o.Cache, kind, gvk, settings)
		if err != nil {
			return nil, err
		}
		g.sources[gvk.GroupKind()] = s
	}
	return g, nil
}

// NeedLeaderElection makes a manager start the gate when it leads.
func (g *Gate) NeedLeaderElection() bool { return true }

// Created records that the object was created for the workload, with the UID and resourceVersion
// that the server returned.
func (g *Gate) Created(workload types.NamespacedName, o client.Object) { g.expect(workload, o, false) }

// Written records that the object was written for the workload, with the UID, the labels and the resourceVersion
// that the server returned.
//
// No event tells of a write that leaves the object without the labels by which the cache selects: then only that it is
// not in the cache is waited for.
func (g *Gate) Written(workload types.NamespacedName, o client.Object) { g.expect(workload, o, true) }

func (g *Gate) expect(workload types.NamespacedName, o client.Object, existed bool) {
	g.record(workload, o, func(s *source, all *writes) {
		if !isVersion(o.GetResourceVersion()) {
			return
		}
		w := all.byUID[o.GetUID()]
		w.source, w.key, w.version = s, storeKey(o), o.GetResourceVersion()
		if existed && !s.selects(o) {
			w.version, w.deleted = "", true
		}
		all.byUID[o.GetUID()] = w
		delete(all.doubted, w.key)
	})
}

// Deleted records that the object was deleted for the workload. It is reached when no object with
// its UID is in the cache, or when that one is terminating.
func (g *Gate) Deleted(workload types.NamespacedName, o client.Object) {
	g.record(workload, o, func(s *source, all *writes) {
		w := all.byUID[o.GetUID()]
		w.source, w.key, w.deleted = s, storeKey(o), true
		all.byUID[o.GetUID()] = w
	})
}

// Doubtful records that the object may have been created for the workload: the answer was lost. The
// doubt ends when an object of that name is in the cache or when the server, asked a little later,
// has none.
func (g *Gate) Doubtful(workload types.NamespacedName, o client.Object) {
	g.record(workload, o, func(s *source, all *writes) {
		if all.doubted == nil {
			all.doubted = map[string]doubt{}
		}
		name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		all.doubted[storeKey(o)] = doubt{source: s, name: name, since: g.options.Clock.Now()}
	})
}

// Wait returns zero when the cache has reached every write of the workload; otherwise it is the time after which to ask
// again if no event comes earlier. It costs a lookup for each outstanding write and forgets those that are reached. At
// a closed gate it stays until the gate opens or ctx ends.
func (g *Gate) Wait(ctx context.Context, workload types.NamespacedName) time.Duration {
	select {
	case <-g.opened:
	case <-ctx.Done():
		return closedWait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.waiting[workload]
	if all == nil {
		return 0
	}
	all.drop(g.versions())
	if all.empty() {
		delete(g.waiting, workload)
		return 0
	}
	return min(max(g.options.Clock.Since(all.since), minWait), maxWait)
}

// Forget drops all writes of a workload that is gone.
func (g *Gate) Forget(workload types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.waiting, workload)
}

// Pending names the outstanding writes of a workload, for logs and tests.
func (g *Gate) Pending(workload types.NamespacedName) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.waiting[workload]
	if all == nil {
		return nil
	}
	var names []string
	for _, w := range all.byUID {
		names = append(names, w.String())
	}
	for key, d := range all.doubted {
		names = append(names, fmt.Sprintf("%s %s in doubt", d.source.kind.Kind, key))
	}
	slices.Sort(names)
	return names
}

func (g *Gate) record(workload types.NamespacedName, o client.Object, put func(*source, *writes)) {
	gvk, err := apiutil.GVKForObject(o, g.options.Scheme)
	if err != nil {
		return // a kind that nobody caches
	}
	s, ok := g.sources[gvk.GroupKind()]
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.waiting[workload]
	if all == nil {
		all = &writes{byUID: map[types.UID]write{}}
		g.waiting[workload] = all
	}
	all.since = g.options.Clock.Now()
	put(s, all)
}

// versions returns the versions of all stores now, read once for a whole look at the writes.
func (g *Gate) versions() map[*source]string {
	versions := make(map[*source]string, len(g.sources))
	for _, s := range g.sources {
		versions[s] = s.version()
	}
	return versions
}

func (all *writes) drop(versions map[*source]string) {
	for uid, w := range all.byUID {
		if w.reached(uid, versions[w.source]) {
			delete(all.byUID, uid)
		}
	}
	for key, d := range all.doubted {
		if d.source.get(key) != nil {
			delete(all.doubted, key)
		}
	}
}

func (all *writes) empty() bool { return len(all.byUID)+len(all.doubted) == 0 }
