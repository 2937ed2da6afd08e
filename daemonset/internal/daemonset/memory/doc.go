// Package memory remembers between passes over a DaemonSet what the cluster does not hold: how often pods failed on a
// node, which nodes had a pod, since when nodes are not ready, which pods belong to no node, and the verdicts on nodes.
//
// What a pass sees goes in; what its plan must know besides comes out. Nothing of it is needed to be right after a
// restart: pauses begin anew, which nodes had a pod is concluded from the status, and since when nodes are not ready from
// their conditions.
package memory
