// Package model is what the plan of any workload is given and what it returns.
//
// The read-only view of a workload goes in, with what its kind adds; actions with reasons, the wish to pull images
// ahead and an error for the author of the spec come out. The rules themselves are the kind's.
package model
