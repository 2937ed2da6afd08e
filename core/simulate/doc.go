// Package simulate is a small world in memory in which plans are played: the rules of an API
// server, a scheduler, a kubelet with bad manners, a garbage collector, and an operator that can
// crash, read stale caches and meet errors.
//
// A seed, objects and a Planner go in; the objects in the end, every event on the way, a count of
// writes and a readable story come out. Time is virtual, nothing sleeps, and the same seed plays
// the same way every time. It stands in for a cluster in tests of plans and must never be imported
// by anything else; what a real server answers is proven on a real server.
//
// What a test reads from the world is shared and read-only, just as in a real cache.
package simulate
