package optional

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/contract"
)

// Discovery lists the resources of a version of an API group. A client-go discovery client implements it.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// NewDiscovery returns a discovery client with requests that end after the timeout; 0 means the timeout of the
// configuration.
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
		Resource:  contract.ImagePullJobResource,
		Versions:  contract.ImagePullJobVersions(),
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

// Metadata returns an empty metadata-only object of the kind in the version.
func (k Kind) Metadata(version string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(k.WithVersion(version))
	return o
}
