// Package admission says what AdvancedCronJobs may look like: their defaults, and what is refused.
//
// The rules are pure but for those of Jobs and of pods, about which the cluster itself is asked by dry runs. Templates
// are stored as they were written: what they lack is read when two of them are compared.
package admission
