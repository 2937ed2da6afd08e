// Package podupdate moves the pods of a workload from one revision to another and through their lives:
// in place or by new pods, through hooks and grace periods, and out of the world.
//
// What the workload is, a judged pod and the wish for it go in; the one action that fulfils the wish now
// comes out, and with it, in the plan, what the pod waits for and when it wants to be looked at again.
// Which pod and how many at a time is for the workload's own plan to decide; it must never be decided
// here, and no kind of workload must ever be known here.
package podupdate
