// Package refusal says when the agent tries a write again that did not succeed: after growing pauses, which no
// event of the object cuts short.
//
// It is a value without clock or client; whoever writes keeps one for each object. It must never hold back the
// first try of a write.
package refusal
