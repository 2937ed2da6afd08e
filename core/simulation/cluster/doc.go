// Package cluster has the rules of an API server in memory, and its clock.
//
// Objects go in by Add, Create, Patch, Change and Delete; out come the errors of a server, the objects as they are (View) or
// were, an Event for each write that changed something, and a readable story. The server keeps UIDs, resourceVersions,
// generations, preconditions, subresources, managedFields of quantities, finalizers and owners; the garbage collector and the
// binder of claims live here, too.
//
//	Create, Patch, Delete ─► rules ─► admission ─► Commit ─► OnEvent ─► React ─► garbage collector
//	                                                 ▲                    │
//	                        parts of the cluster ────┘◄─── After ◄────────┘
//
// Time is virtual and nothing sleeps: Step and Advance move the clock to what After has put into the queue. The seed decides
// everything that is left to chance, so that the same seed plays the same way every time. No goroutine, no client, no global
// state; a World is for one goroutine.
package cluster
