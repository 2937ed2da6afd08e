// Package workloads answers questions about the workloads of a world, as package targets of core/controllers does for a server.
//
// The owners of pods, the objects of a kind and the replicas that they want come out, with the errors of targets.Reader. A kind
// of which the world never had an object counts as one that the cluster does not serve. It writes nothing.
package workloads
