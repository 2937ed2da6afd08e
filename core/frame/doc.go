// Package frame builds the operator of a kind of workload. A kind describes itself (Workload): its name, its cached
// kinds, how its template and its status are read, and its plan. Flags, cache, watches, the snapshot, the reconciler
// and the webhook are built from that. All workloads of this project use it. Package pass runs the passes.
//
// It has no rule about pods: those are in the plan of the kind.
package frame
