// Package conversion converts PodUnavailableBudgets between version v1alpha1 and the hub version v1beta1.
//
// Decoded JSON goes in and comes out. What v1alpha1 has no fields for are annotations there. Nothing is lost either way,
// and no conversion fails for what an object says: the object would be missing in every list. It reads no cluster, and
// it never changes its argument.
package conversion
