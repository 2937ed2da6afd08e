package optional

import (
	"context"
	"errors"
	"fmt"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// ErrNotSynced means that a cache has not synced yet. Without permission to list it never does.
var ErrNotSynced = errors.New("the cache has yet to fill")

// Synced reports whether the cache of the object's kind, which Sync has started, has synced by now.
func Synced(ctx context.Context, c cache.Cache, object client.Object) bool {
	informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	return err == nil && informer.HasSynced()
}

// Sync starts to cache the kind of the object and waits until the cache has synced. If ctx ends first, the error is
// ErrNotSynced and the error of ctx, and the cache continues to sync.
func Sync(ctx context.Context, c cache.Cache, object client.Object) error {
	informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("get the informer: %w", err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) && !informer.HasSynced() {
		return fmt.Errorf("%w: %w", ErrNotSynced, ctx.Err())
	}
	return nil
}

// SyncWithin is Sync for at most a time. It reports whether the cache has synced.
func SyncWithin(ctx context.Context, patience time.Duration, c cache.Cache, object client.Object) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := Sync(ctx, c, object)
	if errors.Is(err, ErrNotSynced) {
		return false, nil
	}
	return err == nil, err
}

// StartCache starts a cache in addition to the manager's. It runs until ctx ends. A manager starts no controller before
// its own cache has synced with all that it holds; only readers of this cache wait for it.
func StartCache(ctx context.Context, mgr ctrl.Manager, o cache.Options) (cache.Cache, error) {
	o.Scheme = mgr.GetScheme()
	o.Mapper = mgr.GetRESTMapper()
	o.HTTPClient = mgr.GetHTTPClient()
	made, err := cache.New(mgr.GetConfig(), o)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	go func() {
		if err := made.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "A cache has stopped")
		}
	}()
	return made, nil
}

// WithCache returns the manager with another cache in place of its own. Anything that is added to it is added to the
// manager.
func WithCache(mgr ctrl.Manager, c cache.Cache) ctrl.Manager { return otherCache{mgr, c} }

type otherCache struct {
	ctrl.Manager
	cache cache.Cache
}

// GetCache implements cluster.Cluster.
func (m otherCache) GetCache() cache.Cache { return m.cache }

// GetFieldIndexer implements cluster.Cluster.
func (m otherCache) GetFieldIndexer() client.FieldIndexer { return m.cache }
