// Package containermeta reports the values with which the containers of the node's pods were started. It restarts
// containers that read values of their pod's metadata if an in-place update has changed these values since, and containers
// if an in-place update asks for their restart.
//
// Pods of the node and their containers in the runtime go in. Out come annotation
// apps.kruise.io/runtime-containers-meta, by which workloads know that an in-place update is complete, and
// containers that are stopped: the kubelet starts them again with the new values. Package plan decides about the
// annotation and about the stops.
//
// It writes that one annotation, through the status of pods, and nothing else. Environments hold secrets: they
// are hashed, and neither kept nor logged.
package containermeta
