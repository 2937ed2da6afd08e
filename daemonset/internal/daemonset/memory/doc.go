// Package memory remembers between passes over a DaemonSet the facts that the cluster does not hold: how often pods
// failed on a node, which nodes had a pod, since when nodes are not ready, which pods belong to no node, and the
// verdicts on nodes.
//
// The objects that a pass sees go in; the further facts that its plan needs come out. Nothing of it is needed to be
// right after a restart: pauses begin again, which nodes had a pod is concluded from the status, and since when nodes
// are not ready from their conditions.
package memory
