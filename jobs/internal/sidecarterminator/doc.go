// Package sidecarterminator is the controller that stops the sidecars of pods whose main containers have ended.
//
// Pods whose containers are marked by environment variables go in; ContainerRecreateRequests, which the node agents
// carry out, other images and final phases come out. It has no kind of its own, and a pod without marks costs it
// nothing. While the cluster does not serve ContainerRecreateRequest it says so on the pods, and begins when the kind
// appears.
package sidecarterminator
