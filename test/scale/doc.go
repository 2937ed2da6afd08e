// Package scale measures the CloneSet operator under load, beside what the same API server can do at
// most and what the built-in ReplicaSet controller does with it.
//
// Options say how many pods; Rows come out, one for each load: nothing to do, bare requests, a
// ReplicaSet scaled up and down, a CloneSet scaled up, updated in place and scaled down. All of it
// happens on this machine: a simulated cluster, whose nodes are simulated in this process, and the
// operator as a process of its own, installed from its overlay with its own account and webhooks.
// What a controller wrote is read from the audit log, what it cost from the kernel.
//
// Rows of one run compare with each other; rows of different machines do not. The package must never
// be pointed at a cluster that it did not start.
package scale
