// Package scope limits a cache of pods to those that matter to an operator: a Scope to the namespaces that matter, such as those
// with an object of its kind; a Filter to the pods that are chosen by their own fields.
//
// There is one watch for all pods, so that the cache has one version that can be compared with the server's. Pods of
// other namespaces are dropped from its events before anything is kept of them. When a namespace begins to matter its
// pods are listed, at the very version that the watch has reached, and handed to the cache between two events; from then
// on its events are passed on. A namespace that does not matter any more stays until the cache lists again.
//
// A Filter drops the events of pods that are not chosen in the same way. Its observer follows these pods.
//
// Marked has a scope follow the objects of a kind and the label of their namespaces.
package scope
