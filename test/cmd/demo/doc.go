// Command demo shows an in-place update on a real cluster that it starts on this machine: pods change their image and
// keep their identity.
//
//	demo                          with a CloneSet
//	demo --feature statefulset    with a StatefulSet, from which a pod moves away, too
//	demo --feature daemonset      with a DaemonSet, of which one node goes back, too
//
// It leaves the cluster running, for further experiments. It must fail if the cluster does not do what it shows.
package main
