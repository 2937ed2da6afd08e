// Package rollout is flotilla rollout: kubectl rollout for the kinds of apps.kruise.io.
//
// The progress of a rollout, and how it is drawn, are pure functions of a workload and its pods. The commands read, follow
// and edit the workload.
package rollout
