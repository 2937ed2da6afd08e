// Package conversion converts WorkloadSpreads between v1alpha1 and v1beta1, the hub.
//
// JSON of one version goes in and JSON of the other comes out; what means the same in both is carried over as it was
// written. Two fields of a subset have other names, and a condition of v1beta1 must have a reason, a message and a time. A
// conversion never fails for what an object says.
package conversion
