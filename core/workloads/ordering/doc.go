// Package ordering says which pod goes first: when a workload scales in, and when it updates.
//
// States of pods go in, indexes in order come out. What a rule reads of a pod is read once, so that sorting n pods
// costs O(n log n) comparisons of numbers; the name decides last, so that equal input has equal output. It must never
// change what it sorts, nor read a clock.
package ordering
