// Package rehearse plays the plans of a workload in a simulated world with the reader, the rules and the memories that the
// workload has on a server.
//
// A frame.Workload and a world of package cluster go in; an operator.Planner comes out, whose snapshots package frame
// reads. The world stands in for the cache, for what the server is asked, and for the clock; what was read, and what
// became of the plan, goes through the parts of the workload's controller.
package rehearse
