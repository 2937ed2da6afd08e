// Package plan holds every rule of the manager's part in a ContainerRecreateRequest as a pure function.
//
// A Snapshot goes in: the request, its pod and a moment. A Plan comes out: steps of actions on the request's
// metadata and on the pod's readiness, or the next status. The node's part stands in package node; the two
// meet in the request's status only, of which each writes its own members.
//
// Nothing here reads or writes a cluster or asks the clock, and nothing changes the snapshot.
package plan
