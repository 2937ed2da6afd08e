// Package freshness answers one question before every pass over a workload: can a plan see the writes of this process for
// it?
//
// Writes go in, by workload, with the resourceVersion that the server returned; a wait comes out, zero when the cache
// has reached all of them. A write is reached when the cached object has its version or a later one, or when the store
// as a whole has passed that version: an object that the cache will never hold (deleted at once, or not matched by its
// selector) cannot make a workload wait forever, because the other events of the watch and its bookmarks, about one a
// minute, move the store on.
//
// Until the cache shows a write, a plan sees the server's answer to it where it reads through Over: the object as it was
// returned, and of a deleted pod or claim the object as terminating, which is true of it whether it is gone by now or
// not. Such writes are not waited for. An answer is dropped as soon as the write is reached, so that it never hides later
// writes of other clients. The tracker waits for the other writes: writes that returned only metadata, and writes with a
// lost answer. It waits until the cache shows their outcome or the server, asked a little later, reports it.
//
// The store's version is the indexer's own, changed under one lock with its content. The reflector's version is never
// used: it moves when an event has arrived, before the store holds the object.
//
// The leader fence: the tracker of a new leader lets no pass run until each store has reached the version of the write
// that made this process leader; if a store gets no events, a live list of metadata shows whether it is complete. The
// trackers of a process share a Fence, so that each store is compared once.
//
// This package never reads the server on the path of a pass: Wait looks at memory only.
package freshness
