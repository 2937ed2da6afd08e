// Package forecast plays an edit of a workload before it is made.
//
// A Scene is a workload with the objects around it; Read gathers it with the user's own rights, and Files from manifests. Play
// puts it into a simulated cluster at the present moment, makes the edit, and lets the operator's own plans run until
// nothing is left to do. A Report comes out: batches, time, the fewest available pods, and the reason of a stop.
//
//	Read ─► Scene ─► Play (core/simulation, <feature>/whatif) ─► Report ─► text, JSON
//
// Nothing is written to the cluster; an edit is validated by a dry run.
package forecast
