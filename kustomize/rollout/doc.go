// Package rollout is flotilla rollout: what kubectl rollout is for the kinds that Kubernetes brings.
//
// What a rollout has come to, and how it is drawn, are pure functions of a workload and its pods. The commands read,
// follow and edit the workload.
package rollout
