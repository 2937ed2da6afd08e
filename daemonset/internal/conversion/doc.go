// Package conversion turns DaemonSets of version v1alpha1 into the hub version v1beta1 and back.
//
// The JSON of one version goes in, that of the other comes out. What both versions say in the same words is carried
// over as it was written; v1alpha1 says by an annotation that the first deployment is partitioned. It reads no cluster,
// and it never changes what it is given.
package conversion
