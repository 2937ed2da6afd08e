// Package engine puts together what the controller of a workload works with: what every controller does (package
// base), and besides it the history of its template, the pods that its cache does not show, and image pull jobs.
//
// A manager and what is the workload's own go in, the parts come out, with the handlers that wake the controller. Every
// workload of the house is made of the same ones; which object is read and what is planned for it is never known here.
package engine
