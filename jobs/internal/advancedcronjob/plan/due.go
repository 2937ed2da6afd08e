package plan

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/schedule"
)

// since is the time after which runs have neither been made nor missed.
func (p *pass) since() time.Time {
	from := p.Cron.CreationTimestamp.Time
	if last := p.status.LastScheduleTime; last != nil {
		from = last.Time
	}
	if n := len(p.status.MissedRuns); n > 0 && p.status.MissedRuns[n-1].ScheduledAt.After(from) {
		from = p.status.MissedRuns[n-1].ScheduledAt.Time
	}
	return from
}

// due returns the run that is to begin, nil for none, and notes those that were missed. Of several runs only the last
// one begins.
func (p *pass) due() *run {
	from, base := p.since(), p.Now
	if from.After(base) {
		base = from
	}
	next := p.schedule.Next(from, base)
	p.status.NextScheduleTime = new(metav1.NewTime(next))
	p.plan.RequeueWithin(max(next.Sub(p.Now), time.Nanosecond))
	last, n := p.schedule.Due(from, p.Now)
	if n == 0 {
		return nil
	}
	if n == schedule.MaxCounted {
		p.notice(corev1.EventTypeWarning, EventTooMany, fmt.Sprintf("%d runs or more were missed, the last one at %s", n, last.Format(time.RFC3339)))
	}
	switch limit, bounded := p.deadline(); {
	case p.takenOver() && p.status.LastScheduleTime == nil:
		p.miss(last, n, ReasonTakenOver)
		return nil
	case bounded && p.Now.Sub(last) > limit:
		p.miss(last, n, p.cause(ReasonDeadline))
		p.notice(corev1.EventTypeWarning, EventMissed, fmt.Sprintf(
			"the run of %s was missed: spec.startingDeadlineSeconds have passed", last.Format(time.RFC3339)))
		return nil
	}
	p.missUntil(last)
	return &run{at: last}
}

// takenOver reports whether OpenKruise wrote the stored status: OpenKruise forgets the jobs it has made as soon as no
// job is left.
func (p *pass) takenOver() bool {
	return p.Cron.Status.ObservedGeneration == 0 && p.Cron.Status.Type != ""
}

// missUntil notes the runs before a time that were neither made nor noted.
func (p *pass) missUntil(end time.Time) {
	if last, n := p.schedule.Due(p.since(), end.Add(-time.Second)); n > 0 {
		p.miss(last, n, p.cause(ReasonLate))
	}
}

// cause is why runs were missed: the reason in the status for the time when they were due, or the present obstacle.
func (p *pass) cause(otherwise string) string {
	before := meta.FindStatusCondition(p.Cron.Status.Conditions, v1beta1.CronJobScheduling)
	switch {
	case before != nil && before.Status == metav1.ConditionFalse:
		return before.Reason
	case p.policy() == v1beta1.ForbidConcurrent && len(p.active()) > 0:
		return ReasonActive
	}
	return otherwise
}

// miss notes n runs, the last of which was due at a time. Runs missed in a row for the same reason are one entry.
func (p *pass) miss(at time.Time, n int, reason string) {
	entry := v1beta1.MissedRun{
		ScheduledAt: metav1.NewTime(at),
		Count:       int32(n),
		Reason:      reason,
	}
	all := p.status.MissedRuns
	if k := len(all) - 1; k >= 0 && all[k].Reason == reason && !TimeOf(p.status.LastScheduleTime).After(all[k].ScheduledAt.Time) {
		entry.Count += all[k].Count
		all = all[:k]
	}
	all = append(all, entry)
	p.status.MissedRuns = all[max(len(all)-v1beta1.MaxMissedRuns, 0):]
}
