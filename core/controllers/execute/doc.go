// Package execute writes what a plan wants.
//
// Steps of actions go in, an Outcome comes out: which actions are done, which met a world that had
// moved on (stale), which the server refused (blocked), and errors. Steps run in order, the actions
// of one step side by side. Every write names the UID and the resourceVersion that was judged, ends
// within a timeout well inside the leader's lease, and is recorded for the freshness gate.
//
// It must never decide what to write, read the world, or retry: the next plan decides again.
package execute
