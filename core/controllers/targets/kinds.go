package targets

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

// kinds are the kinds with cached metadata, in the version that the server prefers.
type kinds struct {
	options  Options
	cached   sync.Map                  // schema.GroupKind to *meta.RESTMapping
	failed   *utilcache.LRUExpireCache // schema.GroupKind to error
	filling  sync.Map                  // schema.GroupKind of caches that have begun
	starting singleflight.Group
	patience *patience
}

func newKinds(o Options, p *patience) *kinds {
	return &kinds{
		options:  o,
		patience: p,
		failed:   utilcache.NewLRUExpireCacheWithClock(cacheSize, o.Clock),
	}
}

// get returns the mapping of a kind after its cache has synced. The first call starts to cache the kind.
func (k *kinds) get(ctx context.Context, kind schema.GroupKind) (*meta.RESTMapping, error) {
	if mapping, ok := k.cached.Load(kind); ok {
		return mapping.(*meta.RESTMapping), nil
	}
	if err, ok := k.failed.Get(kind); ok {
		return nil, err.(error)
	}
	mapping, err := ask(ctx, k.patience, &k.starting, kind.String(), func(ctx context.Context) (*meta.RESTMapping, error) {
		mapping, err := k.start(ctx, kind)
		if err == nil {
			k.cached.Store(kind, mapping)
		}
		return mapping, k.patience.failed(ctx, kind.String(), err)
	})
	if err != nil {
		err = fmt.Errorf("cache %s: %w", kind, err)
		// A cache that is not filled in time may be filled the next moment; or it is the caller who has gone.
		if _, fills := k.filling.Load(kind); ctx.Err() == nil && !fills {
			k.failed.Add(kind, err, k.patience.life(err, 0))
		}
	}
	return mapping, err
}

// leave stops the attempts to list a kind for leftInterval: they are forbidden, and its scales are enough. Each attempt
// counts as a missing permission.
func (k *kinds) leave(kind schema.GroupKind, denied error) {
	if err, ok := k.failed.Get(kind); ok {
		denied = err.(error)
	}
	k.failed.Add(kind, denied, leftInterval)
}

// start lists one object before it caches all: an informer without permission would report nothing and never sync.
func (k *kinds) start(ctx context.Context, kind schema.GroupKind) (*meta.RESTMapping, error) {
	mapping, err := k.options.Mapper.RESTMapping(kind)
	if err != nil {
		return nil, err
	}
	one := &metav1.PartialObjectMetadataList{}
	one.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	within := client.InNamespace("")
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		within = client.InNamespace(k.options.Namespace)
	}
	if err := k.options.Live.List(ctx, one, within, client.Limit(1)); err != nil {
		return nil, err
	}
	k.filling.Store(kind, true)
	if err := optional.Sync(ctx, k.options.Cache, metadataOf(mapping)); err != nil {
		return nil, err
	}
	return mapping, nil
}

// metadataOf returns an object of the kind without a name.
func metadataOf(mapping *meta.RESTMapping) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	return object
}
