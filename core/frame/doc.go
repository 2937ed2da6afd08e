// Package frame makes the operator of a kind of workload. A kind says what it is, what it caches, and how its template
// and its status are read (Workload), and brings its plan; flags, cache, watches, the snapshot, the reconciler and the
// start of the webhook are made from that. Every workload of the house stands in it.
//
// It holds no rule about pods: those are in the plan of the kind.
package frame
