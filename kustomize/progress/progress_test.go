package progress

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// set returns a CloneSet of five pods in the middle of an update, changed as a test wants it.
func set(change func(s *workload.Set)) *workload.Set {
	s := &workload.Set{
		Kind: workload.Kinds()[0], Name: "web", Generation: 2, Observed: 2,
		Wanted: 5, Pods: 5, Ready: 5, Available: 4, Updated: 2, Target: 5,
		UpdateRevision: "web-b", CurrentRevision: "web-a",
	}
	change(s)
	return s
}

func is(conditionType, status, reason, message string) []workload.Condition {
	return []workload.Condition{{Type: conditionType, Status: status, Reason: reason, Message: message}}
}

func TestJudge(t *testing.T) {
	all := func(s *workload.Set) { s.Updated, s.Available = 5, 5 }
	cases := []struct {
		name   string
		change func(s *workload.Set)
		want   Phase
		says   string
	}{
		{"on its way", func(*workload.Set) {}, Progressing, "2 of 5 pods updated, 4 of 5 available"},
		{
			"on its way, and the operator says for whom it waits",
			func(s *workload.Set) { s.Conditions = is("Ready", "False", "MaxUnavailable", "waits for web-x") },
			Progressing, "2 of 5 pods updated, 4 of 5 available: MaxUnavailable: waits for web-x",
		},
		{"all counts are reached", all, Complete, "all 5 pods are updated and available"},
		{"surge pods are left", func(s *workload.Set) { all(s); s.Pods = 6 }, Progressing, "5 of 5 pods updated, 5 of 5 available"},
		{"updated, but not available", func(s *workload.Set) { s.Updated = 5 }, Progressing, "5 of 5 pods updated, 4 of 5 available"},
		{
			"the operator knows better than the counts",
			func(s *workload.Set) { all(s); s.Conditions = is("Ready", "False", "Resize", "web-x") },
			Progressing, "5 of 5 pods updated, 5 of 5 available: Resize: web-x",
		},
		{
			"the partition is reached",
			func(s *workload.Set) { s.Target, s.Available = 2, 5 },
			Complete, "it has reached its partition: 2 of 5 pods are updated, 3 stay at an older revision",
		},
		{
			"the partition keeps one",
			func(s *workload.Set) { s.Target, s.Updated, s.Available = 4, 4, 5 },
			Complete, "it has reached its partition: 4 of 5 pods are updated, 1 stays at an older revision",
		},
		{
			"the spec is newer than the status",
			func(s *workload.Set) { all(s); s.Observed = 1 },
			Progressing, "its operator has not processed the latest change yet",
		},
		{
			"paused on its way",
			func(s *workload.Set) { s.Paused = true; s.Conditions = is("Ready", "True", "Paused", "3 pods wait") },
			Paused, "it is paused, with 2 of 5 pods updated, 4 of 5 available; to continue: flotilla rollout resume cloneset/web",
		},
		{"paused with nothing to do", func(s *workload.Set) { all(s); s.Paused = true }, Complete, "all 5 pods are updated and available"},
		{
			"paused, updated, not available",
			func(s *workload.Set) { s.Updated, s.Paused = 5, true },
			Progressing, "5 of 5 pods updated, 4 of 5 available",
		},
		{
			"stalled",
			func(s *workload.Set) { all(s); s.Conditions = is("Stalled", "True", "InvalidSpec", "no image") },
			Failed, "InvalidSpec: no image",
		},
		{
			"a deadline that another operator tells of",
			func(s *workload.Set) { s.Conditions = is("Progressing", "False", "ProgressDeadlineExceeded", "") },
			Failed, "ProgressDeadlineExceeded",
		},
		{
			"stalled before the latest edit",
			func(s *workload.Set) { s.Observed = 1; s.Conditions = is("Stalled", "True", "InvalidSpec", "no image") },
			Progressing, "its operator has not processed the latest change yet",
		},
		{
			"OnDelete with old pods",
			func(s *workload.Set) { s.OnDelete = true; s.Conditions = is("Ready", "True", "Available", "") },
			Failed, "its strategy is OnDelete: 3 of 5 pods stay at an older revision until their pods are deleted",
		},
		{
			"OnDelete with pods that are not there yet",
			func(s *workload.Set) { s.OnDelete, s.Pods = true, 2 },
			Progressing, "2 of 5 pods updated, 4 of 5 available",
		},
		{
			"paused with pods that are not there yet",
			func(s *workload.Set) { s.Paused, s.Pods = true, 2 },
			Progressing, "2 of 5 pods updated, 4 of 5 available",
		},
		{"deleted", func(s *workload.Set) { all(s); s.Deleting = true }, Failed, "it is being deleted"},
		{
			"a selector of nodes",
			func(s *workload.Set) {
				s.Target = workload.Unknown
				s.Conditions = is("Ready", "True", "Available", "")
			},
			Complete, "it has reached its partition: 2 of 5 pods are updated, 3 stay at an older revision",
		},
		{
			"a selector of nodes, paused",
			func(s *workload.Set) {
				s.Target, s.Paused = workload.Unknown, true
				s.Conditions = is("Ready", "True", "Paused", "")
			},
			Paused, "it is paused, with 2 pods updated, 4 of 5 available; to continue: flotilla rollout resume cloneset/web",
		},
		{
			"a selector of nodes that no operator tells of",
			func(s *workload.Set) { s.Target = workload.Unknown },
			Failed, "the progress on the selected nodes is unknown: condition Ready is missing",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := Judge(set(c.change))
			assert.Equal(t, c.want, p.Phase)
			assert.Equal(t, c.says, p.Message)
		})
	}
}
