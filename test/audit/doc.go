// Package audit reads what clients asked of an API server from its audit log.
//
// The path of a log goes in, its answered requests come out, in the order of their answers. Lines that
// are still being written are left for the next reader. The package changes nothing.
package audit
