// Package optional knows kinds that a cluster may serve, now or later, and that controllers can do without.
//
// A kind and discovery go in, the version in which it is served comes out; Fill caches it from then on. It never makes
// anybody wait for a kind that is not there: when to look again, and how long to wait for the cache, is for the caller.
package optional
