// Package pulljobs finds out whether the cluster serves ImagePullJob, which may be installed or removed at any time,
// and which jobs a workload controls; and it writes what package predownload plans.
//
// As long as the kind is not served, nothing is cached; then what predownload.ReadJob reads. Errors are reported and
// retried; they never hold up a rollout.
package pulljobs
