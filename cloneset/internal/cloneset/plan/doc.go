// Package plan holds every rule of CloneSet as a pure function.
//
// A Snapshot goes in: the CloneSet, its pods, claims and revisions, the nodes' labels, a moment and a seed. A Plan
// comes out: ordered steps of actions with their reasons, the waits with theirs, and from Status the next status. The
// list of rules in plan.go is the order of evaluation; each rule is in the file of its name.
//
// Nothing here reads or writes a cluster, asks the clock or draws random numbers, and nothing changes the snapshot:
// equal snapshots make equal plans.
package plan
