// Package conversion turns CloneSets of version v1alpha1 into the hub version v1beta1 and back.
//
// An object of one version goes in, the same object in the other version comes out. Nothing is lost
// either way: what a version has no field for stands in the labels and annotations that its users know,
// or in an annotation of record. It reads no cluster, and it never changes the object it is given.
package conversion
