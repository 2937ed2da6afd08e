// Package daemonset describes DaemonSet to the frame of workloads, and reads the objects that only DaemonSets need:
// nodes.
//
// No rule of the kind stands here; all of them are in packages plan and eligibility.
package daemonset
