package imagepulljob

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
)

// nodeCache starts the cache of nodes. It decides an order only, so that jobs pull without it where the manager may not
// read nodes.
type nodeCache struct {
	access *optional.Access
	cache  cache.Cache

	mu    sync.Mutex
	begun bool // the cache
}

func newNodeCache(mgr ctrl.Manager) *nodeCache {
	return &nodeCache{
		access: &optional.Access{
			Rights: optional.Rights{Resource: "nodes", Verbs: []string{"list", "watch"}},
			Client: mgr.GetClient(),
			Clock:  clock.RealClock{},
		},
		cache: mgr.GetCache(),
	}
}

// all returns the nodes, false while they are not cached.
func (c *nodeCache) all(ctx context.Context, reader *fastclient.Reader) ([]*corev1.Node, bool, error) {
	if !c.cached(ctx) {
		return nil, false, nil
	}
	nodes, err := fastclient.All[corev1.Node](ctx, reader, "")
	if err != nil {
		return nil, false, fmt.Errorf("read nodes: %w", err)
	}
	return nodes, true, nil
}

// cached reports whether nodes are cached. The first call with the permission to do so starts that and waits for a while.
func (c *nodeCache) cached(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun {
		return optional.Synced(ctx, c.cache, &corev1.Node{})
	}
	if len(c.access.Lacking(ctx)) > 0 {
		return false
	}
	c.begun = true
	synced, err := optional.SyncWithin(ctx, syncPatience, c.cache, &corev1.Node{})
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to cache nodes")
	}
	return synced
}
