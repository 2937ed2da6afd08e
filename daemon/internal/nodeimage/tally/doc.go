// Package tally counts the tags of a NodeImage by their phase.
//
// The manager and the node agent both write the numbers, and both count here, so that they agree. It is pure: no clock,
// no client.
package tally
