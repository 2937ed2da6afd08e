// Package fastclient reads the cache without copying it and keeps the cache small.
//
// A type, a namespace and an owner's UID go in; the informer's own pointers come out, found through an index: the cost of
// a pass over one workload depends on its own pods alone, however many objects the namespace has. Caches are selected by
// label and trimmed to the fields that plans read. Because cached objects are trimmed and shared, no code may change one
// or write one back; writes are patches. In tests a Detector in the Reader fails when a cached object was changed.
package fastclient
