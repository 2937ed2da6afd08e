// Package engine puts together what the controller of a workload works with: clients, caches, the gate
// that keeps it from acting on old views, the executor of its plans, and the handlers that wake it.
//
// A manager and what is the workload's own go in, the parts come out. Every controller of the house is
// made of the same ones; which object is read and what is planned for it is never known here.
package engine
