// Package podcache defines the fields that the manager caches of the cluster's pods: any pod may be asked to recreate a
// container or to start its containers in order, and most never are.
//
// It is a transform of the cache and holds no state. Pods that only requests are about are read from the server. It
// keeps only the fields that plans of package launch read.
package podcache
