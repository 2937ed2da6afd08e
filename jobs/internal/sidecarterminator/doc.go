// Package sidecarterminator is the controller that stops sidecars once the main containers of their pod have ended.
//
// Pods with containers marked by environment variables go in; ContainerRecreateRequests, which the node agents carry
// out, other images and final phases come out. It has no kind of its own, and a pod without marks costs it nothing.
// While the cluster does not serve ContainerRecreateRequest it reports this on the pods, and begins when the kind
// appears.
package sidecarterminator
