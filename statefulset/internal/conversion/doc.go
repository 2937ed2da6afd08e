// Package conversion converts StatefulSets between version v1alpha1 and the hub version v1beta1.
//
// The JSON of one version goes in, the JSON of the other comes out. Nothing is lost either way: values that v1alpha1
// has no field for are kept in an annotation. All else is the same in both versions and is copied unchanged. It reads
// no cluster, and it never changes its argument.
package conversion
