// Package progress is how a plan is carried out: how many actions of a step are under way, what the server's answer
// means for an action and for those after it, what ends the plan, and what is remembered of what was refused.
//
// Steps go in, and a Writer that writes one action; an Outcome comes out. Package execute writes to a server and
// package simulate to a simulated world, so that what is proven of plans there holds for operators.
//
// A plan of any size is carried out in passes that last a moment: what says that the time of a pass is used up is given,
// so that a simulated world tries passes of any size.
//
// It must never decide what to write, wait for anything but its Writer, or retry: the next plan decides again.
package progress
