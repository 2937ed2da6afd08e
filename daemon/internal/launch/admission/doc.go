// Package admission adds launch barriers to new pods with priorities of containers, and the readiness gate
// KruisePodReady to new pods that need one.
//
// A pod goes in, the same pod with barriers, or errors with field paths, come out: AddBarriers and AddReadinessGate are
// pure and idempotent. webhook.go answers the API server. A pod without priorities is never changed.
package admission
