package optional

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Discovery lists what a version of an API group serves. A client-go discovery client implements it.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// NewDiscovery returns a discovery client whose requests end after the timeout; 0 means that of the configuration.
func NewDiscovery(config *rest.Config, timeout time.Duration) (*discovery.DiscoveryClient, error) {
	config = rest.CopyConfig(config)
	if timeout > 0 {
		config.Timeout = timeout
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	return d, nil
}

// Kind is a kind that a cluster may serve.
type Kind struct {
	// GroupKind is the group and kind, and Resource its plural name in paths.
	schema.GroupKind
	Resource string
	// Versions are the versions that can be used, in order of preference.
	Versions []string
}

// ImagePullJobs returns the kind ImagePullJob, which another module may install at any time.
func ImagePullJobs() Kind {
	return Kind{
		GroupKind: schema.GroupKind{Group: contract.AppsGroup, Kind: contract.ImagePullJobKind},
		Resource:  contract.ImagePullJobResource, Versions: contract.ImagePullJobVersions(),
	}
}

// Served returns the most preferred version that is served, or "" if none is.
func (k Kind) Served(d Discovery) (string, error) {
	for _, version := range k.Versions {
		list, err := d.ServerResourcesForGroupVersion(k.WithVersion(version).GroupVersion().String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for %s: %w", k.Resource, err)
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.Resource }) {
			return version, nil
		}
	}
	return "", nil
}

// Await looks for the kind until it is served, with pauses between, and returns the version. A look that fails is logged
// and repeated. If ctx ends first, the error is that of ctx.
func (k Kind) Await(ctx context.Context, d Discovery, c clock.WithTicker, pause time.Duration) (string, error) {
	for {
		version, err := k.Served(d)
		if err != nil {
			log.FromContext(ctx).Error(err, "It is not known whether a kind is served", "kind", k.GroupKind)
		}
		if version != "" {
			return version, nil
		}
		timer := c.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", ctx.Err()
		case <-timer.C():
		}
	}
}

// Metadata returns an empty metadata-only object of the kind in the version.
func (k Kind) Metadata(version string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(k.WithVersion(version))
	return o
}

// ErrNotSynced means that a cache has not synced yet. Without permission to list it never does.
var ErrNotSynced = errors.New("the cache is not filled")

// Synced reports whether the cache of the object's kind, which Sync has started, has synced by now.
func Synced(ctx context.Context, c cache.Cache, object client.Object) bool {
	informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	return err == nil && informer.HasSynced()
}

// Sync starts to cache the kind of the object and waits until the cache has synced. If ctx ends first, the error is
// ErrNotSynced and that of ctx, and the cache goes on syncing.
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
