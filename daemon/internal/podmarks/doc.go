// Package podmarks has the marks by which a pod concerns container launch priority: the barriers of its containers, and a
// readiness gate with a condition that no other controller sets.
//
// A pod goes in; its marks, and the names and keys that they refer to, come out. The cache of pods, the webhook and the plan use
// the same ones. Nothing here reads or writes a cluster, and nothing changes the pod.
package podmarks
