// Package pulljobs finds out whether the cluster serves ImagePullJob, which may be installed or removed at any time,
// and which jobs a workload controls; and it writes the jobs that package predownload plans.
//
// Nothing is cached until the kind is served; after that, the cache has the fields that predownload.ReadJob reads.
// Errors are reported and retried; they never delay a rollout.
package pulljobs
