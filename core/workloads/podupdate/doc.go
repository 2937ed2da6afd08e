// Package podupdate moves the pods of a workload from one revision to another and through their lifecycle: in place or
// by new pods, through hooks and grace periods, and to their deletion.
//
// The workload, the state of a pod and what is wanted of it go in; the next action towards that comes out, and in the
// plan what the pod waits for and when to look at it again. Which pod and how many at a time is for the workload's own
// plan to decide; it must never be decided here, and no kind of workload must ever be known here.
package podupdate
