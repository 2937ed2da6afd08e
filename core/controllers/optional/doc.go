// Package optional is about what controllers can do without: kinds that a cluster may serve, now or later, and rights that
// somebody may grant, now or later.
//
// A kind and discovery go in, the version in which it is served comes out; Sync caches it from then on. Rights go in, the
// verbs that are lacking come out. Begin has a controller begin when all that it needs is there, at once or later. How
// long to wait for a cache is up to the caller. What the process lacks rights for is counted, whoever in it asks.
package optional
