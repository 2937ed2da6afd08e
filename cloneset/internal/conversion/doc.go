// Package conversion converts CloneSets between version v1alpha1 and the hub version v1beta1.
//
// An object of one version goes in, the same object in the other version comes out. Nothing is lost either way:
// values without a field in a version are kept in the labels and annotations that its users know, or in
// recordAnnotation and ignoredAnnotation. It reads no cluster, and it never changes its argument.
package conversion
