// Package daemonset describes DaemonSet to the frame of workloads, and reads what only DaemonSets need to know: nodes.
//
// No rule of the kind stands here; all of them are in packages plan and eligibility.
package daemonset
