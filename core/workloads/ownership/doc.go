// Package ownership makes the actions by which workloads take pods and other objects into their hands
// and let them go, and tells in whose hands an object is.
//
// Objects and references go in, actions and patches come out. A patch touches the named references
// alone: those of others must never be changed.
package ownership
