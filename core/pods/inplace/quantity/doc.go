// Package quantity compares the cpu and memory of containers, which Kubernetes resizes in place. All other resources
// are fixed parts of a pod for it.
package quantity
