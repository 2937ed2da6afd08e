// Package engine puts together the parts of a workload controller: those of every controller (package base), the
// revision history of its template, the search for pods that its cache does not show, and image pull jobs.
//
// A manager and the workload's options go in; the parts come out, with the event handlers that wake the controller. All
// workloads of this project use the same ones; this package does not know which object is read or what is planned for
// it.
package engine
