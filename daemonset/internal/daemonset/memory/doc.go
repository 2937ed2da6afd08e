// Package memory remembers between passes over a DaemonSet what the cluster does not hold: how often pods failed on a
// node, which nodes had a pod, and the verdicts on nodes.
//
// What a pass sees goes in; what its plan must know besides comes out. Nothing of it is needed to be right after a
// restart: pauses begin anew, and which nodes had a pod is concluded from the status.
package memory
