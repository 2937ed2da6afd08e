// Package conversion converts PodUnavailableBudgets between version v1alpha1 and the hub version v1beta1.
//
// Decoded JSON goes in and comes out. Fields that v1alpha1 does not have are annotations there. Nothing is lost either way,
// and no content of an object makes a conversion fail: the object would be missing in every list. The package reads no
// cluster, and it never changes its argument.
package conversion
