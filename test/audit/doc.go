// Package audit reads the requests of clients from the audit log of an API server.
//
// The path of a log goes in, its answered requests come out, in the order of their answers. Lines that are still being
// written are left for the next call. The package changes nothing.
package audit
