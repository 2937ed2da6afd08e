// Package plan holds every rule of DaemonSet as a pure function.
//
// A Snapshot goes in: the DaemonSet, its pods and revisions, all nodes with the verdict on each, and a moment. A Plan
// comes out: ordered steps of actions with their reasons, the waits with theirs, and from Status the next status. The
// list of rules in plan.go is the order of evaluation; each rule is in the file of its name.
//
// Nothing here reads or writes a cluster or asks the clock, and nothing changes the snapshot: equal snapshots make
// equal plans.
package plan
