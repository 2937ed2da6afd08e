package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/fastclient"
)

// Controlled lists what the owner controls, from the cache.
func Controlled[T any, P fastclient.Object[T]](ctx context.Context, r *fastclient.Reader, owner client.Object) ([]*T, error) {
	all, err := fastclient.Owned[T, P](ctx, r, owner.GetNamespace(), owner.GetUID())
	return slices.DeleteFunc(all, func(o *T) bool { return !metav1.IsControlledBy(P(o), owner) }), err
}

// Claim is the claim of the name in the cache, whoever owns it; nil for none.
func (e *Engine) Claim(ctx context.Context, namespace, name string) *corev1.PersistentVolumeClaim {
	claim, err := fastclient.Get[corev1.PersistentVolumeClaim](ctx, e.Reader, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil
	}
	return claim
}

// NodeLabels finds the labels of a node in the cache; an unknown node has none.
func (e *Engine) NodeLabels(ctx context.Context) func(name string) map[string]string {
	return func(name string) map[string]string {
		node, err := fastclient.Get[corev1.Node](ctx, e.Reader, types.NamespacedName{Name: name})
		if err != nil {
			return nil
		}
		return node.Labels
	}
}

// Seed is a number that differs between passes and between workloads.
func Seed(uid types.UID, now time.Time) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid)) // the hash never returns an error
	return h.Sum64() ^ uint64(now.UnixNano())
}

// ServesResize says whether containers of running pods can get other resources: whether the cluster
// serves the subresource pods/resize.
func ServesResize(config *rest.Config) (bool, error) {
	d, err := newDiscovery(config, 0)
	if err != nil {
		return false, err
	}
	resources, err := d.ServerResourcesForGroupVersion("v1")
	if err != nil {
		return false, fmt.Errorf("discover the resources of v1: %w", err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }), nil
}
