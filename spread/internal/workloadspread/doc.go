// Package workloadspread runs the controller of WorkloadSpread: it watches, reads a snapshot, has package plan decide and
// carries out the plan.
//
// It counts the pods of each subset, writes deletion costs, takes pods in that were there before, and deletes those that
// cannot be scheduled where strategy Adaptive asks for that. New pods are the business of package admission.
package workloadspread
