// Package events records events about the agent's work on its node.
//
// Texts of the agent go in, events come out, each with the node as the reporting instance: that is how a policy can see
// that an agent speaks for its own node only. It never writes texts of its own.
package events
