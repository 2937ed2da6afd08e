package progress

import (
	"fmt"

	"github.com/flotilla-project/flotilla/kustomize/workload"
)

// Phase is the state of a rollout.
type Phase string

// All phases.
const (
	// Complete: the pods are as the spec wants them, up to its partition.
	Complete Phase = "Complete"
	// Progressing: the rollout continues by itself.
	Progressing Phase = "Progressing"
	// Paused: it continues when it is resumed.
	Paused Phase = "Paused"
	// Failed: it does not continue without another edit.
	Failed Phase = "Failed"
)

// Report is the state of a rollout and its numbers. It is the output of -o json.
type Report struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Revision is the one that pods go to.
	Revision string `json:"revision"`
	Phase    Phase  `json:"phase"`
	// Wanted is how many pods there should be, Updated and Available how many are so.
	Wanted    int `json:"wanted"`
	Updated   int `json:"updated"`
	Available int `json:"available"`
	// Target is how many pods the update is to reach; absent where a selector of nodes decides.
	Target *int `json:"target,omitempty"`
	// Message is a sentence for people.
	Message string `json:"message"`
}

// Judge returns how far the rollout of a workload is.
func Judge(s *workload.Set) Report {
	p := Report{
		Kind:      s.Kind.Name,
		Namespace: s.Namespace,
		Name:      s.Name,
		Revision:  s.UpdateRevision,
		Wanted:    s.Wanted,
		Updated:   s.Updated,
		Available: s.Available,
	}
	if s.Target != workload.Unknown {
		p.Target = &s.Target
	}
	p.Phase, p.Message = judge(s)
	return p
}

func judge(s *workload.Set) (Phase, string) {
	stalled := s.Condition("Stalled")
	deadline := s.Condition("Progressing")
	old := s.Old()
	switch {
	case s.Deleting:
		return Failed, "it is being deleted"
	case s.Observed < s.Generation:
		return Progressing, "its operator has not processed the latest change yet"
	case stalled != nil && stalled.Status == "True":
		return Failed, told(stalled)
	case deadline != nil && deadline.Status == "False" && deadline.Reason == "ProgressDeadlineExceeded":
		return Failed, told(deadline)
	case s.OnDelete && old > 0:
		return Failed, fmt.Sprintf("its strategy is OnDelete: %d of %d %s stay at an older revision until their pods are deleted",
			old, s.Wanted, s.Kind.Pods)
	}
	return reached(s)
}

// reached reports whether everything that the spec wants is so. Operators report this in condition Ready; where it is
// missing the counts decide.
func reached(s *workload.Set) (Phase, string) {
	ready := s.Condition("Ready")
	if ready == nil && s.Target == workload.Unknown {
		return Failed, "the progress on the selected nodes is unknown: condition Ready is missing"
	}
	switch {
	case isDone(s, ready):
		return Complete, end(s)
	case s.Paused && s.Old() > 0 && (s.Target == workload.Unknown || s.Updated < s.Target):
		return Paused, fmt.Sprintf("it is paused, with %s; to continue: flotilla rollout resume %s", counts(s), s)
	case ready != nil && ready.Status != "True":
		return Progressing, fmt.Sprintf("%s: %s", counts(s), told(ready))
	}
	return Progressing, counts(s)
}

func isDone(s *workload.Set, ready *workload.Condition) bool {
	if ready == nil {
		return s.Updated >= s.Target && s.Available >= s.Wanted && s.Pods <= s.Wanted
	}
	return ready.Status == "True" && ready.Reason != "Paused"
}

// end returns the message about a workload with a rollout that is done.
func end(s *workload.Set) string {
	old := s.Wanted - s.Updated
	if old <= 0 {
		return fmt.Sprintf("all %d %s are updated and available", s.Wanted, s.Kind.Pods)
	}
	stay := "stay"
	if old == 1 {
		stay = "stays"
	}
	return fmt.Sprintf("it has reached its partition: %d of %d %s are updated, %d %s at an older revision", s.Updated, s.Wanted, s.Kind.Pods, old, stay)
}

func counts(s *workload.Set) string {
	if s.Target == workload.Unknown {
		return fmt.Sprintf("%d %s updated, %d of %d available", s.Updated, s.Kind.Pods, s.Available, s.Wanted)
	}
	return fmt.Sprintf("%d of %d %s updated, %d of %d available", min(s.Updated, s.Target), s.Target, s.Kind.Pods, s.Available, s.Wanted)
}

func told(c *workload.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}
