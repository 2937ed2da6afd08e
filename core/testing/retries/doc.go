// Package retries judges how a writer retries what the server refuses.
//
// The kinds of writes that the server refuses for a while go in (Refused), with the requests, the outcomes and the notices of
// an operator in a simulated cluster (Judge). Violations of the world come out: too many requests, writes or Events, pods that
// leave service in vain or stay out of it, and pauses that last after the refusals have ended. Worlds that are not simulated
// clusters count their refusals with Tries.
//
// It must never be imported by anything but tests.
package retries
