// Package statefulset describes StatefulSet to the frame of workloads, and reads what only StatefulSets need to know.
//
// No rule of the kind stands here; all of them are in package plan.
package statefulset
