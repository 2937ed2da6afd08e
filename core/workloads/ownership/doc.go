// Package ownership makes the actions by which workloads adopt and release pods and other objects, and finds the
// controller of an object.
//
// Objects and references go in, actions and patches come out. A patch touches the named references alone: references of
// other owners must never be changed.
package ownership
