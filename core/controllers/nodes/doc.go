// Package nodes has what a controller needs that follows nodes: a cache of what rules read of them, and the events that
// change it. Heartbeats wake nobody.
package nodes
