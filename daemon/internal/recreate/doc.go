// Package recreate runs the manager's controller of ContainerRecreateRequests: it watches, reads a snapshot, has
// package plan decide and carries out the plan.
//
// The rules of the manager are in package plan, the rules of a node in package node, the rules for new requests in package
// admission.
package recreate
