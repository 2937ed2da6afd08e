// Package faults intercepts the requests of a controller under test to its API server, and plays faults of networks and
// servers, and crashes.
//
// A Send handles each request; Over installs one in an environment's clients. Kill, Shaky and BreakPodWatches are the
// faults that every workload must survive. A History checks afterwards every state of the pods that a watch could show.
// The package is for tests only, and must not depend on a kind.
package faults
