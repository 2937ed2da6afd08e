// Package engine puts together what a controller works with: clients, caches, the gate that keeps it from
// acting on old views, the executor of its plans, and the handlers that wake it.
//
// A manager and what is the controller's own go in, the parts come out: a Base for any controller, an Engine
// for that of a workload. Every controller of the house is made of the same ones; which object is read and
// what is planned for it is never known here.
package engine
