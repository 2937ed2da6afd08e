// Package model is the input and the result of the plan of any workload.
//
// The read-only view of a workload goes in, with the fields that its kind adds; actions with reasons, the wish to pull
// images ahead and an error for the author of the spec come out. The rules themselves are the kind's.
package model
