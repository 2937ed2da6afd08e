// Package simulate is a simulated cluster in memory in which plans are carried out: the rules of an API server, a
// scheduler, a kubelet that reports late and out of order, a garbage collector, and an operator that can crash, read
// stale caches and meet errors.
//
// A seed, objects and a Planner go in; the objects at the end, every event on the way, a count of writes and a readable
// story come out. Time is virtual, nothing sleeps, and the same seed plays the same way every time. It replaces a
// cluster in tests of plans and must never be imported by anything else.
package simulate
