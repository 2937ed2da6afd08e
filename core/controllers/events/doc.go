// Package events reports to users the actions of a pass and the reasons why it could not do more.
//
// The outcome and the notices of a pass go in; events on the owner come out, each with the object that it concerns as
// its related object, so that each one keeps its own text. One pass sends a limited number of events, warnings first.
// This package never writes a text of its own: a note is from the plan, or is the server's message when an action has
// failed.
package events
