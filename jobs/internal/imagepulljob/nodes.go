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

// readiness knows which nodes are not ready. It decides an order only, so that jobs pull without it where the manager may
// not read nodes.
type readiness struct {
	access *optional.Access
	cache  cache.Cache
	reader *fastclient.Reader

	mu    sync.Mutex
	begun bool // the cache of nodes
}

func newReadiness(mgr ctrl.Manager, reader *fastclient.Reader) *readiness {
	return &readiness{
		access: &optional.Access{
			Rights: optional.Rights{Resource: "nodes", Verbs: []string{"list", "watch"}}, Client: mgr.GetClient(), Clock: clock.RealClock{},
		},
		cache: mgr.GetCache(), reader: reader,
	}
}

// notReady returns the names of the nodes that are not ready, nil if they are unknown.
func (r *readiness) notReady(ctx context.Context) (map[string]bool, error) {
	if !r.cached(ctx) {
		return nil, nil
	}
	nodes, err := fastclient.All[corev1.Node](ctx, r.reader, "")
	if err != nil {
		return nil, fmt.Errorf("read nodes: %w", err)
	}
	found := map[string]bool{}
	for _, node := range nodes {
		for i := range node.Status.Conditions {
			if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				found[node.Name] = true
			}
		}
	}
	return found, nil
}

// cached reports whether nodes are cached. The first call with the permission to do so starts that and waits for a while.
func (r *readiness) cached(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun {
		return optional.Synced(ctx, r.cache, &corev1.Node{})
	}
	if len(r.access.Lacking(ctx)) > 0 {
		return false
	}
	r.begun = true
	synced, err := optional.SyncWithin(ctx, syncPatience, r.cache, &corev1.Node{})
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to cache nodes")
	}
	return synced
}
