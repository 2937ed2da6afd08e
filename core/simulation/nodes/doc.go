// Package nodes adds nodes to the cluster of package cluster: a scheduler, kubelets that report late and out of order,
// containers whose images behave as the options say, resizes, and agents of nodes.
//
// It reacts to events of pods and writes their bindings and statuses, past the rules that the server has for others. What
// really runs on a node and what the API shows of it are two things here, as they are on a server. Nodes are names until
// AddNodes makes them objects.
//
//	event of a pod ─► scheduler ─► kubelet ─► containers
//	                                  │           │
//	       status of the pod ◄────────┴───────────┘  after a delay
//
// It decides nothing about workloads and judges nobody.
package nodes
