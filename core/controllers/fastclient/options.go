package fastclient

import (
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions returns options of a cache with trimmed objects of one namespace, or of all when it is empty; kinds has
// settings for single kinds. An operator leaves its own kinds out: the cache looks up every kind here when it is
// created, which may be before the CRDs are installed.
func CacheOptions(namespace string, kinds map[client.Object]cache.ByObject) cache.Options {
	o := cache.Options{
		DefaultTransform: Trim,
		ByObject:         kinds,
		NewInformer:      newInformer,
	}
	if namespace != "" {
		o.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.namespace", namespace)
	}
	return o
}
