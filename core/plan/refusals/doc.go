// Package refusals remembers which writes the server refused, and when to try them again.
//
// Outcomes of actions go in, what a pass must know of them comes out as action.Refusals. Pauses grow and are lower
// bounds: no event cuts them short but an edit of the workload and, where a budget may have refused, a pod that becomes
// available. A process that starts anew remembers nothing and tries once; nothing else is lost.
//
// It must never write, and never decide what to write.
package refusals
