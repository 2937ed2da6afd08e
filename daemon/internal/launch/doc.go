// Package launch runs the controller of container launch priority: it watches pods, reads a snapshot, lets
// package plan think and writes what the plan wants.
//
// It also answers readiness gate KruisePodReady of pods that no workload of ours does. No rule stands here;
// all of them are in package plan, and those for new pods in package admission.
package launch
