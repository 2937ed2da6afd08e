package fastclient

import (
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions hold objects trimmed, in one namespace or, when it is empty, in all, and of the given kinds what they
// say. An operator leaves its own kinds out: the cache wants to know every kind here when it is made, which
// may be before the CRDs are installed.
func CacheOptions(namespace string, kinds map[client.Object]cache.ByObject) cache.Options {
	o := cache.Options{DefaultTransform: Trim, ByObject: kinds}
	if namespace != "" {
		o.DefaultFieldSelector = fields.OneTermEqualSelector("metadata.namespace", namespace)
	}
	return o
}
