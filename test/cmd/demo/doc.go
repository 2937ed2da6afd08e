// Command demo shows a feature on a real cluster that it starts on this machine. Most change the image of pods, which
// keep their identity.
//
//	demo                          with a CloneSet
//	demo --feature statefulset    with a StatefulSet, from which a pod moves away, too
//	demo --feature daemonset      with a DaemonSet, of which one node goes back, too
//	demo --feature jobs           pods on each node to their end, and images ahead of pods
//	demo --feature budget         a rollout and a drain at once, which never go below a budget
//	demo --feature spread         a Deployment over two zones, of which one has no node at the end
//	demo --feature all            every feature installed, and all of these demos, one after the other
//
// With --kubeconfig and --registry it uses a cluster that is there and can pull from that registry, and builds none. It leaves
// the cluster running, for further experiments. It must fail if the cluster does not do what it shows.
package main
