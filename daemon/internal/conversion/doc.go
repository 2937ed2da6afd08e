// Package conversion converts NodeImages and ContainerRecreateRequests between version v1alpha1 and the hub version
// v1beta1.
//
// An object of one version goes in, the same object in the other version comes out. Nothing is lost either way: values
// without a field in v1alpha1 are kept in annotations, which the hub does not have. It reads no cluster, and it never
// changes its argument.
package conversion
