// Package hash turns any value into the 32-bit number that Kubernetes' own controllers use for
// template hashes.
//
// A value goes in, a number comes out. The numbers live in users' clusters, in annotations that
// are compared later, so the function must never change.
package hash
