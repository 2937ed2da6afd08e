// Package execute writes what a plan wants.
//
// Steps of actions go in, a progress.Result comes out. Package progress says in which order actions are written,
// how many at a time, what an answer means and what ends the plan; here are the requests, each action's in a goroutine
// of its own. Every write names the UID and the resourceVersion that was judged, ends within a timeout well inside the
// leader's lease, and is recorded for the freshness gate.
//
// It must never decide what to write, read the world, or retry: the next plan decides again.
package execute
