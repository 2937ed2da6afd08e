// Package scope limits a cache of pods to the namespaces that have a budget.
//
// There is one watch for all pods, so that the cache has one version that can be compared with the server's. Of what it
// brings, pods of other namespaces are dropped before anything is kept of them. When a namespace gets its first budget its
// pods are listed, at the very version that the watch has reached, and handed to the cache between two events; from then on
// its events are passed on. A namespace that has lost its budgets stays until the cache lists anew.
//
// It never decides which namespaces matter.
package scope
