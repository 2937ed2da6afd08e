// Package plan decides when the sidecars of a job's pod are stopped, and how.
//
// A pod and the requests made for it go in; new requests, another image or the pod's final phase come out. It must
// never read a clock or the server.
package plan
