// Package optional finds out about kinds that a cluster may serve, now or later, and that controllers can do without.
//
// A kind and discovery go in, the version in which it is served comes out; Sync caches it from then on. It never waits
// for a kind that is not served: when to look again, and how long to wait for the cache, is up to the caller.
package optional
