// Package events tells users what a pass did and why it could not do more.
//
// The outcome and the notices of a pass go in; events on the owner come out, each with the object
// that it concerns as its related object, so that every one keeps its own text. There is a cap per
// pass, with warnings first. It must never make up a text: notes are those of the plan, or the
// server's when an action has failed.
package events
