// Package conversion converts AdvancedCronJobs, BroadcastJobs, ImagePullJobs and ImageListPullJobs between version
// v1alpha1 and the hub version v1beta1.
//
// Decoded JSON goes in and comes out. Three kinds are the same in both versions, and of AdvancedCronJob one field
// differs, which v1alpha1 keeps in an annotation. Nothing is lost either way, and no conversion fails because of the
// content of an object: the object would be missing in every list. It reads no cluster, and it never changes its
// argument.
package conversion
