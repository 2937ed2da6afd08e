// Package refusals remembers which writes the server refused, and when to try them again.
//
// Outcomes of actions go in, the refusals that a pass needs come out as action.Refusals. Pauses grow and are lower
// bounds: no event cuts them short but an edit of the workload and, where a budget may have refused, a pod that becomes
// available. A process that restarts remembers nothing and tries once; nothing else is lost.
//
// The package must never write, and never choose a write.
package refusals
