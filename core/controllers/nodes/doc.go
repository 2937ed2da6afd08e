// Package nodes has the parts of a controller that follow nodes: a cache of the fields that rules read, and the events
// that change them. Heartbeats wake no controller.
package nodes
