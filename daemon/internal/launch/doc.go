// Package launch runs the controller of container launch priority: it watches pods, reads a snapshot, has package plan
// decide and carries out the plan.
//
// It also sets the condition of readiness gate KruisePodReady for pods for which no workload of ours does. All rules
// are in package plan, and those for new pods in package admission.
package launch
