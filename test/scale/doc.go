// Package scale measures an operator under load, beside what the same API server can do at most and
// what the controller of the built-in kind most like its own does with it: ReplicaSet for CloneSet,
// StatefulSet for StatefulSet.
//
// Options say whose operator and how many pods; Rows come out, one for each load: nothing to do, bare
// requests, with the operator and while it is dead, the built-in kind scaled up and down, the feature's
// kind scaled up, updated in place and scaled down; or, from Restart, a restart among many sets that need
// nothing. What takes long to make, pods of others and many sets, is made once and kept: etcd's data
// folder is copied into the cache when the cluster that made it has ended, and out of it for each run. features.go has one entry for each operator that can be measured. All of it happens on
// this machine: a simulated cluster, whose nodes are simulated in this process, and the operator as a
// process of its own, installed from its overlay with its own account and webhooks. What a controller
// wrote is read from the audit log, what it cost from the kernel.
//
// Rows of one run compare with each other; rows of different machines do not. The package must never
// be pointed at a cluster that it did not start.
package scale
