package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/completion"
)

// Plan is the result of one pass over a job.
type Plan struct {
	action.Plan
	// Err is why the spec cannot be followed.
	Err error

	status *v1beta1.BroadcastJobStatus // nil leaves it as it is
}

// pass is the state of making one plan.
type pass struct {
	Snapshot
	plan   Plan
	places []*place
	status *v1beta1.BroadcastJobStatus
	rng    *rand.Rand
	taken  map[string]bool // names of pods
}

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := &pass{
		Snapshot: s,
		plan:     Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}},
		rng:      rand.New(rand.NewPCG(s.Seed, s.Seed)), //nolint:gosec // a name needs no secrecy
	}
	p.decide()
	p.plan.Plan = action.Admit(p.plan.Plan)
	return p.plan
}

// decide wants what brings the job on.
func (p *pass) decide() {
	s := p.Snapshot
	if s.Job.DeletionTimestamp != nil {
		return
	}
	p.places = s.placesOf()
	if Finished(s.Job) {
		p.finish()
		completion.Expire(&p.plan.Plan, s.Job, s.Job.Status.CompletionTime, s.Job.Spec.CompletionPolicy.TTLSecondsAfterFinished)
		if completion.EditedLate(&p.plan.Plan, s.Job, s.Job.Status.ObservedGeneration) {
			p.plan.status = s.Job.Status.DeepCopy()
			p.plan.status.ObservedGeneration = s.Job.Generation
		}
		return
	}
	p.count()
	p.run()
	p.plan.status = p.status
}

// Finished reports whether the job has ended. Its status is final then.
func Finished(job *v1beta1.BroadcastJob) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c v1beta1.JobCondition) bool {
		return (c.Type == v1beta1.JobComplete || c.Type == v1beta1.JobFailed) && c.Status == corev1.ConditionTrue
	})
}

// run is the order of the rules for a job that has not ended.
func (p *pass) run() {
	switch {
	case p.pauseForFailures():
		return
	case p.keepPause():
		p.stopFailed()
		return
	case p.failByPolicy(), p.failFast(), p.failOverdue():
		return
	}
	p.removeSurplus()
	p.stopFailed()
	p.retry()
	p.create()
	p.complete()
}

// never reports whether the job stays for nodes that join later.
func (p *pass) never() bool { return p.Job.Spec.CompletionPolicy.Type == v1beta1.CompletionNever }

// keepPause keeps the books of a pause, and reports whether the job is paused.
func (p *pass) keepPause() bool {
	s := p.status
	if p.Job.Spec.Paused {
		if s.Phase != v1beta1.PhasePaused || s.PausedSince == nil {
			s.PausedSince = p.stamp()
		}
		if s.Phase != v1beta1.PhasePaused && len(p.acknowledged()) > 0 && p.Job.Spec.FailurePolicy.Type == v1beta1.FailPause {
			p.notice(corev1.EventTypeWarning, EventPaused, "Paused because of a failed pod: %s", p.namesOfFailed())
		}
		s.Phase, s.Message = v1beta1.PhasePaused, MessagePaused
		return true
	}
	if s.PausedSince != nil {
		s.PausedSeconds += int64(p.Now.Sub(s.PausedSince.Time) / time.Second)
		s.PausedSince = nil
	}
	if s.Phase == v1beta1.PhasePaused {
		p.notice(corev1.EventTypeNormal, EventContinue, "The job continues")
	}
	s.Phase = v1beta1.PhaseRunning
	return false
}

// failOverdue fails the job when its time is over, and reports whether it did.
func (p *pass) failOverdue() bool {
	limit := p.Job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	if limit == nil || p.never() {
		return false
	}
	run := p.Now.Sub(p.status.StartTime.Time) - action.Seconds(p.status.PausedSeconds)
	left := action.Seconds(*limit) - run
	if left > 0 {
		p.plan.RequeueWithin(left)
		return false
	}
	p.fail(EventDeadline, fmt.Sprintf("activeDeadlineSeconds (%d) have passed", *limit))
	return true
}

// readParallelism returns how many pods may run; a percentage is one of the desired nodes, rounded up. A value that
// nothing can be made of ends the plan.
func (p *pass) readParallelism() (n int, ok bool) {
	if p.Job.Spec.Parallelism == nil {
		return len(p.places), true
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(p.Job.Spec.Parallelism, int(p.status.Desired), true)
	if err == nil && n < 0 {
		err = fmt.Errorf("%d is negative", n)
	}
	if err != nil {
		p.plan.Err = fmt.Errorf("read spec.parallelism: %w", err)
		if p.Job.Status.ObservedGeneration != p.Job.Generation {
			p.notice(corev1.EventTypeWarning, EventUnreadable, "%v", p.plan.Err)
		}
		p.status.Message = p.plan.Err.Error()
	}
	return n, err == nil
}

// notice adds an event about the next status. It is sent once that status is written.
func (p *pass) notice(kind, reason, format string, args ...any) {
	p.plan.Notices = append(p.plan.Notices, action.Notice{
		Type:       kind,
		Reason:     reason,
		Note:       fmt.Sprintf(format, args...),
		WithStatus: true,
	})
}
