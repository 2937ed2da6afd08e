// Package faults breaks parts of a real cluster in the middle of rollouts of all features, and judges every state that
// a watcher sees.
//
// A Fault is a value: its name, the part that is broken, how it is broken and put back, and the pods that are excused.
// Run creates the workloads of workloads.yaml in a namespace of its own, begins their rollouts, injects the fault once the
// first pod is updated, ends it, and waits until all rollouts are complete. Meanwhile a watcher records a History: one
// Moment for each event. Rules are pure functions over the moments. A Verdict has the rules that were broken, with times.
package faults
