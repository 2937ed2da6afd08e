// Package scenarios plays the situations that every workload must get through, in the worlds of package simulate.
//
// The start of a workload and its edits go in; failed tests come out. Courses are played with a crash after any write, with
// each kind of fault and with every write sent twice. Other scenarios have disruption budgets, refused updates, environments
// from annotations, resizes, crash loops, templates that are copies of pods, and forecasts of edits.
//
// It must never be imported by anything but tests.
package scenarios

const (
	// sweepLimit bounds the passes of every run.
	sweepLimit = 5000
	// quietWakes is after how many wakes in a row without a write a quiet world counts as settled.
	quietWakes = 20
)
