// Package orphans finds the pods that a workload could own and does not hold: those without a controller that
// its selector matches, and its own without the label by which the operator's cache selects pods.
//
// A workload goes in, its lost pods come out. Those with the label are in the cache, by an index. For the others
// the server is asked, for nothing but pods without the label: when the workload is first met, when its spec
// changes, when a pod has left the cache that nobody deletes, and every ten minutes. A workload that lacks nothing, as after a restart, can wait for its first
// question, so that an operator does not ask for all of them at once.
package orphans
