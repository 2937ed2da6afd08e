// Package podupdate moves the pods of a workload from one revision to another and through their lifecycle: in place or
// by new pods, through hooks and grace periods, and to their deletion.
//
// The workload, the state of a pod and the wanted state of it go in; the next action towards that comes out, and in the
// plan the reason why the pod waits and when to look at it again. The workload's own plan chooses the pods and their
// number at a time; this must never be decided here, and no kind of workload must ever be known here.
package podupdate
