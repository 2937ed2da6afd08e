// Package operations proves what those who run features ask for: each works alone, none stops when others are dead, pods
// outlive their operators, releases follow each other both ways without a write to a pod that runs, and alerts fire. Its
// tests run the managers as processes against a control plane with simulated nodes.
package operations
