// Package cloneset describes CloneSet to the frame of workloads, and reads what only CloneSets need to know.
//
// No rule of the kind stands here; all of them are in package plan.
package cloneset
