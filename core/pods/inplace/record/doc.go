// Package record is what an update in place has written on its pod: the annotations with the state of the update and
// with the plan of an update that waits until the pod is out of service.
//
// The format is that of OpenKruise, with members of our own. The input of the package is a pod, or a change of it, and
// the output is what is written, what is left to write, and which restarts are under way. It never tells whether a
// written change is done.
package record
