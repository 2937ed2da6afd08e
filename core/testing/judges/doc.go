// Package judges finds what must not happen in a simulated cluster.
//
// A world of core/simulation goes in, and each write that breaks an invariant becomes a violation of the world; so does each
// plan. The judges know what the operator under test can know: its last view and its own writes (World.Sees, World.Sends).
//
//	writes   upper bounds (Limit), pods, claims, in-place updates and agents (Check..., NodeAgents)
//	plans    one action for each object, hooks, live revisions (Judge, ApplyJudges)
//
// It must never be imported by anything but tests.
package judges
