// Package simulate has "flotilla simulate": an edit of a workload, from a manifest or from flags, whose forecast is printed.
//
// The edit is applied to the live object as kubectl apply does, and validated by a dry run. Package forecast plays it.
package simulate
