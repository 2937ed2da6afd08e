// Package plan decides what annotation apps.kruise.io/runtime-containers-meta of a pod says, and which
// containers are restarted because what they read at their start has changed since, or because their workload asks for it.
//
// A Snapshot of the pod and of its containers in the runtime goes in; out comes the annotation to write, the
// containers to stop and when to run the next pass. Containers are matched by name and ID, never by position. Nothing
// is restarted outside an in-place update.
//
// It reads no clock, waits for nothing and changes nothing of what it is given.
package plan
