// Package freshness answers one question before every pass over a workload: does the cache hold
// what this process has written for it?
//
// Writes go in, by workload, with the resourceVersion that the server returned; a wait comes out,
// zero when the cache has reached all of them. A write counts as reached when the cached object has
// its version or a later one, or when the store as a whole has passed it: what the cache will never
// hold (an object that was deleted at once, or that its selector leaves out) cannot leave a workload
// waiting, because the watch's other events and its bookmarks, about one a minute, move the store on.
//
// The store's version is the indexer's own, changed under one lock with its content. The
// reflector's version is never used: it moves when an event has arrived, before the store holds it.
//
// A new leader's gate stays closed until each store has reached the version of the write that made
// it leader; where a store is quiet, a live list of metadata shows whether it is complete. The gates
// of a process share a Fence, so that each store is compared once.
//
// The package must never read the server on the path of a pass: Wait looks at memory only.
package freshness
