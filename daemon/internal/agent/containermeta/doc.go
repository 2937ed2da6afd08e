// Package containermeta reports what the containers of the node's pods were started with, and restarts those
// that read values of their pod's metadata that an in-place update has changed since, and those whose restart an in-place
// update asks for.
//
// Pods of the node and their containers in the runtime go in. Out come annotation
// apps.kruise.io/runtime-containers-meta, by which workloads know that an in-place update is complete, and
// containers that are stopped: the kubelet starts them again with the new values. What is written and what is
// stopped is decided in package plan.
//
// It writes that one annotation, through the status of pods, and nothing else. Environments hold secrets: they
// are hashed, and neither kept nor logged.
package containermeta
