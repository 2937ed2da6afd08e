// Package conversion turns StatefulSets of version v1alpha1 into the hub version v1beta1 and back.
//
// The JSON of one version goes in, that of the other comes out, and nothing is lost either way: what
// v1alpha1 has no field for travels in an annotation. All else is carried over as it was written, because
// both versions say it in the same words. It reads no cluster, and it never changes what it is given.
package conversion
