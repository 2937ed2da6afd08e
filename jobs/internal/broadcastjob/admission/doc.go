// Package admission says what BroadcastJobs may look like: their defaults, and what is refused. All but the webhook,
// which asks the cluster about pod templates, is pure.
package admission
