package meter

import (
	"slices"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

const revisionLabel = contract.RevisionLabel

// Values of label revision.
const (
	revisionUpdate = "update"
	revisionOlder  = "older"
)

// otherReason is the value of label reason for a reason that is not one of reasons.
const otherReason = "Other"

// reasons are the reasons that kubelet and scheduler report for pods in trouble; a runtime may report others.
func reasons() []string {
	return []string{
		"CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull", "Error", "Evicted",
		"Failed", "InvalidImageName", "OOMKilled", "SchedulingGated", "Unschedulable",
	}
}

// trouble has the labels of pods in trouble.
type trouble struct{ reason, revision string }

// troublesOf counts the pods in trouble; nil for none.
func troublesOf(seen Observation) map[trouble]int {
	var found map[trouble]int
	for _, pod := range seen.Pods {
		t := trouble{podstate.TroubleOf(pod).Reason, revisionOlder}
		if t.reason == "" {
			continue
		}
		if !slices.Contains(reasons(), t.reason) {
			t.reason = otherReason
		}
		if hash := podstate.ShortHash(pod.Labels[revisionLabel]); hash != "" && hash == seen.Update {
			t.revision = revisionUpdate
		}
		if found == nil {
			found = map[trouble]int{}
		}
		found[t]++
	}
	return found
}
