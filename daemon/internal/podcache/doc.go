// Package podcache defines the pods that the manager caches, with the fields that it caches of them: any pod may be asked to
// recreate a container or to start its containers in order, and most never are.
//
// It has the filter and the transform of the cache, and holds no state of its own. The cache has the pods that concern container
// launch priority, with the fields that plans of package launch read. Pods that only requests are about are read from the
// server; an observer of the filter follows their changes.
package podcache
