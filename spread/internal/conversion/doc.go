// Package conversion converts WorkloadSpreads between v1alpha1 and v1beta1, the hub.
//
// JSON of one version goes in and JSON of the other comes out; values with the same meaning in both are carried over as
// they were written. Two fields of a subset have other names, and a condition of v1beta1 must have a reason, a message and
// a time. No content of an object makes a conversion fail.
package conversion
