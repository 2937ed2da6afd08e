// Package optional finds out about kinds that a cluster may serve, now or later, and that controllers can do without.
//
// A kind and discovery go in, the version in which it is served comes out, at once or, from Await, when there is one; Sync
// caches it from then on. How long to wait for the kind and for the cache is up to the caller.
package optional
