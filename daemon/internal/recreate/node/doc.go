// Package node holds every rule of a node's part in a ContainerRecreateRequest as a pure function.
//
// A Snapshot goes in: the requests for one pod, its containers as the runtime has them, the stops that this process has
// begun, and the node's time. A Plan comes out: status writes, after them at most one container to stop or to run the hook
// of, stops to give up, and when to look again.
//
// A stop begins with the hook. Four rules keep it safe. Hook and signal are written into the status before they begin, with
// the resourceVersion that the plan was made from, so a stale view or a second agent stops nothing. A container is
// known by its ID, so that only the runs at the time of the plan are ever stopped. Times are compared only with others of
// the same machine. A stop that has begun outlasts the end of its request, not its deletion. Nothing here reads or
// writes a cluster or a runtime or asks the clock, and nothing changes the snapshot.
package node
