package freshness

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// source is the store of one kind with its selector.
type source struct {
	kind     schema.GroupVersionKind
	store    toolscache.Store
	settings cache.ByObject

	mu      sync.Mutex
	read    bool              // through Tracker.Over
	answers map[string]answer // by store key
}

// write is the last write to one object.
type write struct {
	source  *source
	key     string
	version string // to be reached; empty when only the deletion is waited for
	deleted bool
}

// uncertainWrite is a write with a lost answer.
type uncertainWrite struct {
	source  *source
	name    types.NamespacedName
	since   time.Time
	uid     types.UID
	version string // that the write was meant for; empty for a create
}

// seen reports whether the store, which has the version, shows the outcome of the write, or a later write.
func (d uncertainWrite) seen(key, version string) bool {
	cached := d.source.get(key)
	switch {
	case d.version == "":
		return cached != nil
	case cached == nil:
		return atLeast(version, d.version)
	}
	return cached.GetResourceVersion() != d.version && atLeast(cached.GetResourceVersion(), d.version)
}

func newSource(ctx context.Context, c cache.Cache, kind client.Object, gvk schema.GroupVersionKind, settings cache.ByObject) (*source, error) {
	informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("get the informer of %s: %w", gvk.Kind, err)
	}
	single, ok := informer.(interface{ GetStore() toolscache.Store })
	if !ok {
		return nil, fmt.Errorf("the cache has several informers of %s: the tracker needs a single one", gvk.Kind)
	}
	return &source{
		kind:     gvk,
		store:    single.GetStore(),
		settings: settings,
	}, nil
}

func (s *source) version() string { return s.store.LastStoreSyncResourceVersion() }

// selects reports whether the cache selects objects with these labels.
func (s *source) selects(o metav1.Object) bool {
	return s.settings.Label == nil || s.settings.Label.Matches(labels.Set(o.GetLabels()))
}

// get returns the cached object, or nil.
func (s *source) get(key string) metav1.Object {
	item, found, err := s.store.GetByKey(key)
	if err != nil || !found {
		return nil
	}
	o, ok := item.(metav1.Object)
	if !ok {
		return nil
	}
	return o
}

// reached reports whether the store, which has the version, shows the write. An object of the same name with another
// UID was written later, because versions grow over all objects of a kind.
func (w write) reached(uid types.UID, version string) bool {
	passed := w.version == "" || atLeast(version, w.version)
	if passed && !w.deleted {
		return true
	}
	cached := w.source.get(w.key)
	if !passed && (cached == nil || !atLeast(cached.GetResourceVersion(), w.version)) {
		return false
	}
	return !w.deleted || cached == nil || cached.GetUID() != uid || cached.GetDeletionTimestamp() != nil
}

// String describes the write that the tracker waits for.
func (w write) String() string {
	if w.deleted {
		return fmt.Sprintf("%s %s to be gone", w.source.kind.Kind, w.key)
	}
	return fmt.Sprintf("%s %s at %s", w.source.kind.Kind, w.key, w.version)
}

// atLeast reports whether the version have equals want or is later. A store without a version has reached nothing.
func atLeast(have, want string) bool {
	order, err := resourceversion.CompareResourceVersion(have, want)
	return err == nil && order >= 0
}

// isVersion reports whether a version can be compared.
func isVersion(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

func storeKey(o client.Object) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}
