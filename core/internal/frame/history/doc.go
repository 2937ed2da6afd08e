// Package history finds the ControllerRevision of a workload's present template among those that the workload owns.
//
// The input of revision.Choose goes in, its choice comes out. This package adds two things: templates that differ even
// with core's own defaults are compared with the cluster's defaults, and an answer is remembered until the workload or
// its revisions change. It never writes.
package history
