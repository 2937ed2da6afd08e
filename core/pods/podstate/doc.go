// Package podstate derives the state of a pod once: assigned, ready, available, terminating, of which revision.
//
// A pod and a time go in, a State comes out; every rule of every plan reads the State, so that one pass never sees one
// pod in two ways. It must never change a pod.
package podstate
