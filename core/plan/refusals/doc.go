// Package refusals remembers which writes the server refused, and when to try them again.
//
// What became of actions goes in, what a pass must know of it comes out as action.Refusals. Pauses grow
// and are floors: no event cuts them short but an edit of the workload. A process that starts anew
// remembers nothing and tries once; nothing else is lost.
//
// It must never write, and never decide what to write.
package refusals
