// Package statefulset describes StatefulSet to the frame of workloads, and reads the objects that only StatefulSets
// need.
//
// No rule of the kind stands here; all of them are in package plan.
package statefulset
