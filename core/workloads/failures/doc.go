// Package failures lets a workload wait between pods that fail one after the other.
//
// The first pod that fails at a place is replaced at once, further ones after 1 s, 2 s and so on up to 15 minutes. The
// workload defines its places: a node, an ordinal, or the whole set. The pauses are remembered in the process. They
// begin again with another revision, and where nothing has failed for twice the longest pause.
package failures
