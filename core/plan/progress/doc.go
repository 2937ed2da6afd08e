// Package progress carries out a plan: it decides how many actions of a step are under way, how the server's answer
// affects an action and the actions after it, when the plan ends, and which refusals are remembered.
//
// Steps go in, and a Writer that writes one action; an Outcome comes out. Package execute writes to a server and
// package simulate to a simulated world, so that proofs about plans there hold for operators.
//
// A plan of any size is carried out in passes that last a moment: the caller supplies the function that ends a pass, so
// that a simulated world tries passes of any size.
//
// The package must never choose the writes, wait for anything but its Writer, or retry: the next plan decides again.
package progress
