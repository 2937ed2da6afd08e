// Package statefulset runs the StatefulSet controller: it watches, reads a snapshot, lets package plan
// think, writes what the plan wants and then the status.
//
// No rule of the kind stands here; all of them are in package plan.
package statefulset
