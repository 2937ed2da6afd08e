// Package history finds the revision of a workload's present template among those that it owns.
//
// What revision.Choose judges goes in, its choice comes out. Two things are added to it: templates are
// compared with the defaults of the cluster where core's own leave a difference, and an answer is
// remembered for as long as neither the workload nor its revisions change. It must never write.
package history
