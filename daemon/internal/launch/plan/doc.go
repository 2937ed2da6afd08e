// Package plan holds every rule of container launch priority as a pure function.
//
// A Snapshot goes in: a pod with containers that wait behind barriers, and its ConfigMap. A Plan comes out: the
// ConfigMap to make, the barriers to open in it, and the mark that all are open. Nothing here reads or writes a cluster, and nothing changes
// the snapshot.
package plan
