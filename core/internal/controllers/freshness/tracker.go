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
	// fencedWait is the wait that is returned while the leader fence is not passed when the caller's context ends.
	fencedWait = 100 * time.Millisecond
	// minWait and maxWait bound the wait for outstanding writes. It is as long as they have been outstanding already:
	// usually the event of the write wakes the workload first, and the wait is for events that no controller watches,
	// such as the event of our own status write.
	minWait = 20 * time.Millisecond
	maxWait = time.Second
)

// Options are the settings of a tracker.
type Options struct {
	// Cache is the cache that plans read.
	Cache cache.Cache
	// Scheme knows the kinds.
	Scheme *runtime.Scheme
	// Kinds are the kinds of the writes that the tracker waits for, each with its settings in the cache. Only the label
	// and field selectors matter. Writes to other kinds are not recorded.
	Kinds map[client.Object]cache.ByObject
	// Live reads from the server.
	Live client.Reader
	// Clock returns the time and ticks.
	Clock clock.WithTicker
	// Fence is the leader fence of the process. Nil for a process without earlier leaders.
	Fence *Fence
}

// Tracker tracks the outstanding writes of one controller. It lets no pass run before Start has finished with the
// leader fence; a manager calls Start once it leads. It is safe for concurrent use.
type Tracker struct {
	options     Options
	sources     map[schema.GroupKind]*source
	fencePassed chan struct{} // closed by Start

	mu      sync.Mutex
	waiting map[types.NamespacedName]*writes
}

// writes are the outstanding writes of one workload.
type writes struct {
	since     time.Time
	byUID     map[types.UID]write
	uncertain map[string]uncertainWrite
}

// New returns a tracker. It fails when the cache has several informers for one kind, as one of several named namespaces
// has (a field selector on metadata.namespace restricts it to one namespace with one informer), and when client-go's
// feature AtomicFIFO is off: then stores have no version.
func New(ctx context.Context, o Options) (*Tracker, error) {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.AtomicFIFO) {
		return nil, errors.New("feature AtomicFIFO of client-go is off: the cache lacks a resourceVersion")
	}
	t := &Tracker{
		options:     o,
		fencePassed: make(chan struct{}),
		sources:     map[schema.GroupKind]*source{},
		waiting:     map[types.NamespacedName]*writes{},
	}
	for kind, settings := range o.Kinds {
		gvk, err := apiutil.GVKForObject(kind, o.Scheme)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %T: %w", kind, err)
		}
		s, err := newSource(ctx, o.Cache, kind, gvk, settings)
		if err != nil {
			return nil, err
		}
		t.sources[gvk.GroupKind()] = s
	}
	return t, nil
}

// NeedLeaderElection makes the manager start the tracker when it leads.
func (t *Tracker) NeedLeaderElection() bool { return true }

// Created records that the object was created for the workload, with the UID and resourceVersion
// that the server returned.
func (t *Tracker) Created(workload types.NamespacedName, o client.Object) {
	t.expect(workload, o, false)
}

// Written records that the object was written for the workload, with the UID, the labels and the resourceVersion that
// the server returned.
//
// After a write that removes the labels by which the cache selects there is no event for the new version: the write is
// reached when the object is not in the cache.
func (t *Tracker) Written(workload types.NamespacedName, o client.Object) {
	t.expect(workload, o, true)
}

func (t *Tracker) expect(workload types.NamespacedName, o client.Object, existed bool) {
	t.record(workload, o, func(s *source, all *writes) {
		if !isVersion(o.GetResourceVersion()) {
			return
		}
		w := all.byUID[o.GetUID()]
		if s.show(o) {
			if !w.deleted {
				delete(all.byUID, o.GetUID())
			}
			delete(all.uncertain, storeKey(o))
			return
		}
		w.source = s
		w.key = storeKey(o)
		w.version = o.GetResourceVersion()
		if existed && !s.selects(o) {
			w.version, w.deleted = s.unshow(w.key), true
		}
		all.byUID[o.GetUID()] = w
		delete(all.uncertain, w.key)
	})
}

// Deleted records that the object was deleted for the workload. It is reached when no object with
// its UID is in the cache, or when that one is terminating.
func (t *Tracker) Deleted(workload types.NamespacedName, o client.Object) {
	t.record(workload, o, func(s *source, all *writes) {
		w, waits := all.byUID[o.GetUID()]
		if !waits && s.showDeleted(o) {
			return
		}
		w.source = s
		w.key = storeKey(o)
		w.deleted = true
		all.byUID[o.GetUID()] = w
	})
}

// MaybeCreated records that the object may have been created for the workload: the answer was lost. It waits until an
// object of that name is in the cache or until the server, asked a little later, has none.
func (t *Tracker) MaybeCreated(workload types.NamespacedName, o client.Object) {
	t.doubt(workload, o, uncertainWrite{})
}

// MaybeWritten records that the object, given in the version that the write was meant for, may have been written or
// deleted for the workload: the answer was lost. It waits until the cache shows a later version, or until it shows the
// version that the server, asked a little later, returns.
func (t *Tracker) MaybeWritten(workload types.NamespacedName, o client.Object) {
	t.doubt(workload, o, uncertainWrite{uid: o.GetUID(), version: o.GetResourceVersion()})
}

func (t *Tracker) doubt(workload types.NamespacedName, o client.Object, d uncertainWrite) {
	t.record(workload, o, func(s *source, all *writes) {
		if all.uncertain == nil {
			all.uncertain = map[string]uncertainWrite{}
		}
		d.source, d.since = s, t.options.Clock.Now()
		d.name = types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		all.uncertain[storeKey(o)] = d
	})
}

// Wait returns zero if the cache has reached every write of the workload; otherwise after how long to ask again if no
// event comes earlier. It costs a lookup for each outstanding write and forgets those that are reached. While the
// leader fence is not passed, it blocks until it is or ctx ends.
func (t *Tracker) Wait(ctx context.Context, workload types.NamespacedName) time.Duration {
	select {
	case <-t.fencePassed:
	case <-ctx.Done():
		return fencedWait
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting[workload]
	if all == nil {
		return 0
	}
	all.drop(t.versions())
	if all.empty() {
		delete(t.waiting, workload)
		return 0
	}
	return min(max(t.options.Clock.Since(all.since), minWait), maxWait)
}

// Forget drops all writes of a workload that is gone.
func (t *Tracker) Forget(workload types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, workload)
}

// Pending returns the names of a workload's outstanding writes, for logs and tests.
func (t *Tracker) Pending(workload types.NamespacedName) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting[workload]
	if all == nil {
		return nil
	}
	var names []string
	for _, w := range all.byUID {
		names = append(names, w.String())
	}
	for key, d := range all.uncertain {
		names = append(names, fmt.Sprintf("%s %s in doubt", d.source.kind.Kind, key))
	}
	slices.Sort(names)
	return names
}

func (t *Tracker) record(workload types.NamespacedName, o client.Object, put func(*source, *writes)) {
	gvk, err := apiutil.GVKForObject(o, t.options.Scheme)
	if err != nil {
		return // a kind that is not cached
	}
	s, ok := t.sources[gvk.GroupKind()]
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.waiting[workload]
	if all == nil {
		all = &writes{byUID: map[types.UID]write{}}
		t.waiting[workload] = all
	}
	all.since = t.options.Clock.Now()
	put(s, all)
}

// versions returns the versions of all stores, read once for all outstanding writes.
func (t *Tracker) versions() map[*source]string {
	versions := make(map[*source]string, len(t.sources))
	for _, s := range t.sources {
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
	for key, d := range all.uncertain {
		if d.seen(key, versions[d.source]) {
			delete(all.uncertain, key)
		}
	}
}

func (all *writes) empty() bool { return len(all.byUID)+len(all.uncertain) == 0 }
