package frame

import (
	"context"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
)

// Claim returns the claim of that name in the cache, with any owner; nil if there is none.
func (c *Controller) Claim(ctx context.Context, namespace, name string) *corev1.PersistentVolumeClaim {
	claim, err := fastclient.Get[corev1.PersistentVolumeClaim](ctx, c.Reader, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil
	}
	return claim
}

// NodeLabels returns a function that reads a node's labels from the cache; an unknown node has none.
func (c *Controller) NodeLabels(ctx context.Context) func(name string) map[string]string {
	return func(name string) map[string]string {
		node, err := fastclient.Get[corev1.Node](ctx, c.Reader, types.NamespacedName{Name: name})
		if err != nil {
			return nil
		}
		return node.Labels
	}
}

// Seed returns a seed that differs between passes and between workloads.
func Seed(uid types.UID, now time.Time) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // the hash never returns an error
	return h.Sum64() ^ uint64(now.UnixNano())
}
