// Package plan decides which images the agent pulls and about the status of the NodeImage.
//
// A Snapshot of the NodeImage, of the pulls in memory and of the runtime goes in; out comes a Plan: pulls to
// start, to stop and to drop, and the status to write. A tag is pulled once for each version. Pulls wait
// for a slot, first in first out. Results of other versions, of tags that are no longer wanted and
// of tags that another process has completed are dropped.
//
// It reads no clock, waits for nothing and leaves its input unchanged.
package plan
