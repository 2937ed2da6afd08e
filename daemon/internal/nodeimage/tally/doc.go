// Package tally counts the tags of a NodeImage by their phase.
//
// Manager and node agent both write the numbers; they count in the same way because both count here. It is
// pure: no clock, no client.
package tally
