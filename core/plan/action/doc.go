// Package action is the closed set of what a plan may want: create, delete, patch and wait.
//
// A plan is a value. It says what to write, in which order, and why; package execute writes it and
// package simulate plays it, both in the way of package progress, and its text is what tests, logs and
// people read. Nothing here reads or writes a cluster.
package action
