// Package conversion turns NodeImages and ContainerRecreateRequests of version v1alpha1 into the hub
// version v1beta1 and back.
//
// An object of one version goes in, the same object in the other version comes out. Nothing is lost
// either way: what v1alpha1 has no field for stands in annotations, which the hub does not show. It reads
// no cluster, and it never changes the object it is given.
package conversion
