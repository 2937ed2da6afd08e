package plan

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// How many jobs are kept that have ended.
const (
	// DefaultSuccessfulJobs is how many that succeeded.
	DefaultSuccessfulJobs = 3
	// DefaultFailedJobs is how many that failed.
	DefaultFailedJobs = 1
)

// forget deletes the oldest jobs that have ended and are too many. No run depends on that.
func (p *pass) forget() {
	var drop []action.Action
	for state, limit := range map[State]*int32{
		Succeeded: p.Cron.Spec.SuccessfulJobsHistoryLimit, Failed: p.Cron.Spec.FailedJobsHistoryLimit,
	} {
		keep := DefaultSuccessfulJobs
		if state == Failed {
			keep = DefaultFailedJobs
		}
		if limit != nil {
			keep = int(*limit)
		}
		drop = append(drop, p.surplus(state, keep)...)
	}
	slices.SortFunc(drop, func(a, b action.Action) int { return cmp.Compare(a.Object.GetName(), b.Object.GetName()) })
	p.plan.Add(action.Step{
		Name:     "history",
		Actions:  drop,
		Apart:    true,
		Optional: true,
	})
}

// surplus returns the deletions of the oldest jobs in a state but for those that are kept.
func (p *pass) surplus(state State, keep int) (drop []action.Action) {
	var ended []*Child
	for i := range p.Children {
		if p.Children[i].State == state && p.Children[i].Object.GetDeletionTimestamp() == nil {
			ended = append(ended, &p.Children[i])
		}
	}
	slices.SortFunc(ended, func(a, b *Child) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Object.GetName(), b.Object.GetName()))
	})
	for _, child := range ended[:max(len(ended)-keep, 0)] {
		if p.recorded(child) {
			drop = append(drop, remove(child, "History", "the history limit is exceeded"))
		}
	}
	return drop
}

// recorded reports whether the status, as it is stored, shows that the run of a job was made. Until it does, only the
// job shows it.
func (p *pass) recorded(child *Child) bool {
	stored := &p.Cron.Status
	if token := child.Object.GetAnnotations()[v1beta1.RunNowAnnotation]; token != "" && token == p.Cron.Annotations[v1beta1.RunNowAnnotation] && token != stored.LastRunNow {
		return false
	}
	return !scheduledAt(child.Object).After(TimeOf(stored.LastScheduleTime))
}

func remove(child *Child, reason, why string) action.Action {
	what := child.Kind + " " + child.Object.GetName()
	return action.Action{
		Verb:        action.Delete,
		Object:      child.Object,
		Propagation: metav1.DeletePropagationBackground,
		Reason:      reason,
		Message:     why,
		Event: &action.Event{
			Succeeded: EventDeleted,
			Note:      "deleted " + what + ": " + why,
			Failed:    EventDeleteFailed,
		},
	}
}
