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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Discovery says what a version of an API group serves. A client-go discovery client is one.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// NewDiscovery makes a discovery client whose requests end after the timeout; 0 means that of the configuration.
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
	// GroupKind names it, and Resource is its name in paths.
	schema.GroupKind
	Resource string
	// Versions are those that may be served, the best one first.
	Versions []string
}

// ImagePullJobs returns the kind ImagePullJob, which another module may install at any time.
func ImagePullJobs() Kind {
	return Kind{
		GroupKind: schema.GroupKind{Group: contract.AppsGroup, Kind: contract.ImagePullJobKind},
		Resource:  contract.ImagePullJobResource, Versions: contract.ImagePullJobVersions(),
	}
}

// Served returns the best version in which the kind is served, empty when it is not.
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

// Metadata returns an object of the kind in the version, of which only the metadata is known.
func (k Kind) Metadata(version string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(k.WithVersion(version))
	return o
}

// ErrNotFilled says that a cache is not filled yet. Without permission to list it never is.
var ErrNotFilled = errors.New("the cache is not filled")

// Fill caches the kind of the object and waits until the cache is filled or ctx ends: then the error is ErrNotFilled, and
// filling goes on.
func Fill(ctx context.Context, c cache.Cache, object client.Object) error {
	informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("get the informer: %w", err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) && !informer.HasSynced() {
		return ErrNotFilled
	}
	return nil
}
