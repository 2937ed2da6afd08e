// Package admission puts launch barriers into new pods that want their containers to start in order, and the
// readiness gate KruisePodReady into new pods of others.
//
// A pod goes in, the same pod with barriers, or errors with field paths, come out: Order and Gate are pure
// and change nothing on a pod that they have seen before. webhook.go answers the API server. A pod that asks
// for nothing is never changed.
package admission
