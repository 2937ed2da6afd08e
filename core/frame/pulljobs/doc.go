// Package pulljobs knows for workloads whether the cluster serves ImagePullJob, which may be installed or
// removed at any time, and which jobs a workload controls; and it writes what package predownload plans.
//
// Until the kind is seen, nothing of it is cached; then only the metadata. What goes wrong here is told
// and tried again; it must never hold up a rollout.
package pulljobs
