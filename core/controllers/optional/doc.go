// Package optional is about the optional needs of controllers: kinds that a cluster may serve, now or later, and rights
// that may be granted, now or later.
//
// A kind and discovery go in, the version in which it is served comes out; Sync caches it from then on. Rights go in, the
// verbs that are lacking come out. Begin has a controller begin when all that it needs is there, at once or later. How
// long to wait for a cache is up to the caller. Requests and checks that fail because of a missing right are counted for
// all parts of the process.
package optional
