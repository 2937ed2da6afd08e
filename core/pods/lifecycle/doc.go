// Package lifecycle is the state machine of a pod of a workload: PreparingNormal, Normal, PreparingUpdate, Updating,
// Updated, PreparingDelete.
//
// The input is a pod, the workload's hooks and the decision of the workload. The output is the label, timestamp, hook
// labels and finalizers, and the not-ready keys of condition KruisePodReady, all on one action.PodChange, so that
// several transitions of one pass cost one write. Which pod to update or to delete is the workload's decision; it must
// never be taken here.
package lifecycle
