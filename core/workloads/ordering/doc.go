// Package ordering decides which pod goes first: when a workload scales in, and when it updates.
//
// States of pods go in, indexes in order come out. Each rule reads a pod once, so that sorting n pods costs O(n log n)
// comparisons of numbers; the name decides last, so that equal input has equal output. The package must never change
// its input, nor read a clock.
package ordering
