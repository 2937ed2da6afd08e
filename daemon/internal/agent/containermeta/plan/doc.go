// Package plan decides about the value of annotation apps.kruise.io/runtime-containers-meta of a pod, and which
// containers are restarted because the values that they read at their start have changed since, or because their workload
// asks for it.
//
// A Snapshot of the pod and of its containers in the runtime goes in; out comes the annotation to write, the
// containers to stop and when to run the next pass. Containers are matched by name and ID, never by position. Nothing
// is restarted outside an in-place update.
//
// It reads no clock, waits for nothing and leaves its input unchanged.
package plan
