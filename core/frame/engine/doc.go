// Package engine puts together the parts of a workload controller: the parts of every controller (package base), the
// revision history of its template, the search for pods that its cache does not show, and image pull jobs.
//
// The input is a manager and the workload's options. The output is the parts, with the event handlers that wake the
// controller. All workloads of this project use the same ones; this package does not know which object is read or how
// its plan is made.
package engine
