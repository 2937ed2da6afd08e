// Package scale measures an operator under load. It compares it with the maximum of the same API server and with the
// controller of the most similar built-in kind: ReplicaSet for CloneSet, StatefulSet for StatefulSet, CronJob for
// AdvancedCronJob, and a ReplicaSet without WorkloadSpread for one with it.
//
// Options with the operator and the number of pods go in; Rows come out, one for each load: idle, bare requests with
// the operator and without it, the built-in kind scaled up and down, the feature's kind scaled up, updated in place and
// scaled down; or, from Restart, a restart with many sets that need no change. Features with other kinds than workloads have parts
// of their own. This process plays the agents of nodes. Objects that take long to create, pods of others and many sets, are
// created once: etcd's data folder is copied into the cache when the cluster that made it has ended, and from there for each
// run. features.go has one entry for each operator that can be measured. Everything
// runs on this machine: a cluster with nodes that this process simulates, and the operator as a process, installed from
// its overlay with its own account and webhooks. Writes are read from the audit log, costs from the kernel.
//
// Measure makes a Record of all features, and Bounds compare it with bounds.yaml. Counts puts small loads on all operators, for
// the counts that are the same on every machine. Publish shows a record in the docs.
//
// Rows of one run can be compared, rows of different machines cannot. The package must never be pointed at a cluster
// that it did not start.
package scale
