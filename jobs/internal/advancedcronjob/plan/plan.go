package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/internal/advancedcronjob/schedule"
)

// Plan is the result of one pass over an AdvancedCronJob.
type Plan struct {
	action.Plan
	// Err is why the spec cannot be followed.
	Err error

	cron   *v1beta1.AdvancedCronJob
	status *v1beta1.AdvancedCronJobStatus // nil leaves it as it is
	run    *run                           // that is to begin; nil for none
	held   hold                           // why runs do not begin
}

// hold is why runs do not begin; empty if they do.
type hold struct{ reason, message string }

// pass is one Compute.
type pass struct {
	Snapshot
	plan     Plan
	status   *v1beta1.AdvancedCronJobStatus
	schedule schedule.Schedule
	invalid  error // why there is no schedule
}

// Compute makes the plan of one pass. It never changes the snapshot.
func Compute(s Snapshot) Plan {
	p := &pass{Snapshot: s, plan: Plan{Plan: action.Plan{Refusals: s.Refusals, Now: s.Now}, cron: s.Cron}}
	if s.Cron.DeletionTimestamp != nil {
		return p.plan
	}
	p.status = s.Cron.Status.DeepCopy()
	p.plan.status = p.status
	p.status.ObservedGeneration = s.Cron.Generation
	p.status.Type = KindOf(s.Cron)
	p.schedule, p.invalid = schedule.Parse(s.Cron.Spec.Schedule, s.Cron.Spec.TimeZone)
	if !s.NotServed && !s.Forbidden {
		p.observe()
		p.forget()
	}
	p.status.NextScheduleTime = nil
	p.decide()
	p.tellHold()
	p.plan.Plan = action.Admit(p.plan.Plan)
	return p.plan
}

// KindOf returns the kind of the jobs. Of several templates, which admission refuses, OpenKruise's order counts.
func KindOf(cron *v1beta1.AdvancedCronJob) v1beta1.TemplateKind {
	switch t := &cron.Spec.Template; {
	case t.JobTemplate != nil:
		return v1beta1.TemplateJob
	case t.ImageListPullJobTemplate != nil:
		return v1beta1.TemplateImageListPullJob
	case t.BroadcastJobTemplate != nil:
		return v1beta1.TemplateBroadcastJob
	}
	return v1beta1.TemplateJob
}

// decide finds out which run is to begin, if any.
func (p *pass) decide() {
	t := &p.Cron.Spec.Template
	switch {
	case p.NotServed:
		p.hold(ReasonNotServed, "no jobs are created: the cluster does not serve kind "+string(p.status.Type))
		return
	case p.Forbidden:
		p.hold(ReasonForbidden, "no jobs are created: the operator has no permission to list and watch kind "+string(p.status.Type))
		return
	case t.JobTemplate == nil && t.BroadcastJobTemplate == nil && t.ImageListPullJobTemplate == nil:
		p.hold(ReasonInvalid, "spec.template is empty: set jobTemplate, broadcastJobTemplate or imageListPullJobTemplate")
		return
	case p.invalid != nil:
		p.hold(ReasonInvalid, "spec.schedule: "+p.invalid.Error())
		p.plan.Err = p.invalid
		return
	case p.Cron.Spec.Paused != nil && *p.Cron.Spec.Paused:
		p.hold(ReasonPaused, "no jobs are created while spec.paused is true")
		return
	}
	if due := p.due(); due != nil {
		p.begin(*due)
	} else if token := p.Cron.Annotations[v1beta1.RunNowAnnotation]; token != "" && token != p.status.LastRunNow {
		p.begin(run{token: token})
	}
}

func (p *pass) hold(reason, message string) { p.plan.held = hold{reason, message} }

// active are the jobs that have not ended.
func (p *pass) active() (found []*Child) {
	for i := range p.Children {
		if p.Children[i].State == Active {
			found = append(found, &p.Children[i])
		}
	}
	return found
}

// begin makes the job of a run, as soon as the jobs that run allow it.
func (p *pass) begin(r run) {
	p.plan.run = &r
	active := p.active()
	switch policy := p.policy(); {
	case policy == v1beta1.ForbidConcurrent && len(active) > 0:
		p.hold(ReasonActive, "the next job waits for "+active[0].Object.GetName()+", because spec.concurrencyPolicy is Forbid")
		return
	case policy == v1beta1.ReplaceConcurrent && p.replace(active):
		return
	}
	p.plan.Add(action.Step{Name: "create", Actions: []action.Action{p.create(r)}})
}

// replace deletes the jobs that run, once the status records their runs, and reports whether there were any: a later
// pass, which sees that they go, makes the next job.
func (p *pass) replace(active []*Child) (found bool) {
	var drop []action.Action
	for _, child := range active {
		if child.Object.GetDeletionTimestamp() != nil {
			continue
		}
		found = true
		if p.recorded(child) {
			drop = append(drop, remove(child, "Replace", "a new job replaces it (concurrencyPolicy Replace)"))
		}
	}
	p.plan.Add(action.Step{Name: "replace", Actions: drop})
	return found
}

func (p *pass) policy() v1beta1.ConcurrencyPolicy {
	switch {
	case p.Cron.Spec.ConcurrencyPolicy != "":
		return p.Cron.Spec.ConcurrencyPolicy
	case p.status.Type == v1beta1.TemplateImageListPullJob:
		return v1beta1.ReplaceConcurrent
	}
	return v1beta1.AllowConcurrent
}

// deadline is how late a run may begin; false for any time.
func (p *pass) deadline() (time.Duration, bool) {
	if p.Cron.Spec.StartingDeadlineSeconds == nil {
		return 0, false
	}
	return action.Seconds(*p.Cron.Spec.StartingDeadlineSeconds), true
}

// tellHold sends an event when a reason that users have to know of is new.
func (p *pass) tellHold() {
	before := meta.FindStatusCondition(p.Cron.Status.Conditions, v1beta1.CronJobScheduling)
	if before != nil && before.Reason == p.plan.held.reason {
		return
	}
	switch p.plan.held.reason {
	case ReasonNotServed:
		p.notice(corev1.EventTypeWarning, EventNotServed, p.plan.held.message)
	case ReasonForbidden:
		p.notice(corev1.EventTypeWarning, EventForbidden, p.plan.held.message)
	case ReasonInvalid:
		p.notice(corev1.EventTypeWarning, EventInvalid, p.plan.held.message)
	case ReasonActive:
		p.notice(corev1.EventTypeNormal, EventActive, p.plan.held.message)
	}
}

func (p *pass) notice(kind, reason, note string) {
	p.plan.Notices = append(p.plan.Notices, action.Notice{
		Type:       kind,
		Reason:     reason,
		Note:       note,
		WithStatus: true,
	})
}

// Status returns the next status, given the jobs that the plan has made and the failed actions; nil leaves it as it is.
func (p *Plan) Status(made []Child, done action.Failures) *v1beta1.AdvancedCronJobStatus {
	if p.status == nil {
		return nil
	}
	status := p.status.DeepCopy()
	for i := range made {
		see(status, p.cron, &made[i])
		status.Active = append(status.Active, reference(&made[i], nil))
	}
	held := p.held
	if held.reason == "" && p.run != nil && len(made) == 0 && done.ScaleError != "" {
		held = hold{ReasonRefused, done.ScaleError}
	}
	condition := metav1.Condition{
		Type:               v1beta1.CronJobScheduling,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: p.cron.Generation,
		Reason:             ReasonAsScheduled,
		Message:            "jobs are created on schedule",
		LastTransitionTime: metav1.NewTime(p.Now),
	}
	if held.reason != "" {
		condition.Status = metav1.ConditionFalse
		condition.Reason = held.reason
		condition.Message = held.message
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}
