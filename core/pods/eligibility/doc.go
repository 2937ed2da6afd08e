// Package eligibility decides which nodes run a pod of a template, by the rules of the built-in DaemonSet or by the
// rules of a job for every node: node name, node selector, required node affinity, taints, and for jobs also cordons
// and the total resources of the node.
//
// A pod template and nodes go in; verdicts come out. A template is compiled once, and Memory evaluates a node again
// only when the node or the set has changed. Ports, other pods, preferred affinity and the readiness of nodes play no
// part, and nothing here reads a cluster.
package eligibility
