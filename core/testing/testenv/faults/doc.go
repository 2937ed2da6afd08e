// Package faults stands between a controller under test and its API server and does what networks, servers and crashes
// do.
//
// A Send decides about each request; Over puts one in the way of an environment's clients. Kill, Shaky and
// BreakPodWatches are the faults that every workload must survive. A History checks afterwards every state of the pods
// that a watcher could see. It is for tests alone and must know no kind.
package faults
