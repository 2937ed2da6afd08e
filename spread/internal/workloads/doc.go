// Package workloads reads the workloads that are spread: workloads of the built-in kinds and of the kinds that a ConfigMap
// allows.
//
// A WorkloadSpread or a pod goes in; the state of the workload that counts comes out: its replicas, the revision of new
// pods, the owners of its pods. It is made for webhooks, as package targets of core, which it builds on: repeated questions
// send no request. It never writes, and it never reads pods.
package workloads
