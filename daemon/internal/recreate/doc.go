// Package recreate runs the manager's controller of ContainerRecreateRequests: it watches, reads a snapshot,
// lets package plan think and writes what the plan wants.
//
// No rule of the kind stands here: those of the manager are in package plan, those of a node in package node,
// those for new requests in package admission.
package recreate
