// Package workloads reads the workloads that are spread: those of the built-in kinds and those that a ConfigMap allows.
//
// A WorkloadSpread or a pod goes in; what counts of the workload comes out: its replicas, the revision of new pods, the
// owners of its pods. It is made for webhooks, as package targets of core, which it builds on: repeated questions send no
// request. It never writes, and it never reads pods.
package workloads
