// Package orphans finds the pods that a workload should have in its hands and the operator's cache does
// not show: without a controller though the selector matches, or without the label by which the cache
// selects pods.
//
// A workload goes in, its lost pods come out, read from the server itself. That is done when the
// workload is first met, when its spec changes and every ten minutes; in between the answer is none.
package orphans
