// Package conversion turns DaemonSets of version v1alpha1 into the hub version v1beta1 and back.
//
// The JSON of one version goes in, the JSON of the other comes out. Fields with the same words in both versions are
// carried over as they were written; v1alpha1 has an annotation for a partitioned first deployment. It reads no
// cluster, and it never changes its argument.
package conversion
