// Package cloneset describes CloneSet to the frame of workloads, and reads the objects that only CloneSets need.
//
// No rule of the kind stands here; all of them are in package plan.
package cloneset
