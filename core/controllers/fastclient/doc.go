// Package fastclient reads the cache without copying it and keeps the cache small.
//
// A type, a namespace and an owner's UID go in; the informer's own pointers come out, found through an index: a pass
// over one workload costs what its own pods cost, whatever else the namespace holds. Caches are selected by label and
// trimmed to what plans read. Because cached objects are trimmed and shared, nobody may change one or write one back;
// writes are patches. In tests a Detector in the Reader fails when a cached object was changed.
package fastclient
