package recreate

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/recreate/plan"
)

// Backlog counts the requests for a pod, as the cache has them. It is ready for use, and counts none until SetUp has
// started the cache and the cache has synced. It is safe for concurrent use.
type Backlog struct{ cached atomic.Pointer[cached] }

// cached is a cache of requests with podIndex.
type cached struct {
	cache  cache.Cache
	reader *fastclient.Reader
}

// Open returns how many requests for the pod are not over.
func (b *Backlog) Open(ctx context.Context, pod *corev1.Pod) int {
	c := b.cached.Load()
	if c == nil || !optional.Synced(ctx, c.cache, &v1beta1.ContainerRecreateRequest{}) {
		return 0
	}
	all, err := ofPod(ctx, c.reader, pod.Namespace, string(pod.UID))
	if err != nil {
		return 0
	}
	open := 0
	for _, r := range all {
		if plan.Open(r) {
			open++
		}
	}
	return open
}
