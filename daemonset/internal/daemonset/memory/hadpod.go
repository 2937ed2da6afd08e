package memory

import (
	"slices"

	"github.com/flotilla-project/flotilla/core/pods/eligibility"
)

// notePods notes the nodes of the pods, and at first the nodes that had one by the status. Nodes that are gone are
// forgotten.
func (s *knownSet) notePods(seen Seen, verdicts []eligibility.Verdict) {
	has := map[string]bool{}
	for _, pod := range seen.Pods {
		if node := eligibility.NodeOf(pod); node != "" {
			has[node] = true
		}
	}
	present := make(map[string]bool, len(s.hadPod))
	for _, node := range seen.Nodes {
		if has[node.Name] || s.hadPod[node.Name] {
			present[node.Name] = true
		}
	}
	if s.hadPod == nil {
		for _, node := range lost(seen, verdicts, present) {
			present[node] = true
		}
	}
	s.hadPod = present
}

// lost are the nodes that have lost their pod while no operator looked, as far as the status shows: it counted more
// nodes with a pod than there are, and fewer without. Nodes get their first pods in the order of their names, so that
// the first ones without had one.
//
//	5 of 8 nodes had a pod, and now 4 of 8 have: the first of the others. Now 4 of 7: none, the fifth is gone.
func lost(seen Seen, verdicts []eligibility.Verdict, has map[string]bool) []string {
	with, without := 0, []string(nil)
	for i, node := range seen.Nodes {
		switch {
		case !verdicts[i].ShouldRun:
		case has[node.Name]:
			with++
		default:
			without = append(without, node.Name)
		}
	}
	s := &seen.Set.Status
	hadOne := int(s.CurrentNumberScheduled)
	hadNone := int(s.DesiredNumberScheduled - s.CurrentNumberScheduled)
	slices.Sort(without)
	return without[:max(0, min(hadOne-with, len(without)-hadNone, len(without)))]
}
