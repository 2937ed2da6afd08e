package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// count begins the next status with the counts of the places. No number is taken over from the last one.
func (p *pass) count() {
	last := &p.Job.Status
	s := &v1beta1.BroadcastJobStatus{
		Conditions:         slices.Clone(last.Conditions),
		StartTime:          last.StartTime,
		Phase:              cmp.Or(last.Phase, v1beta1.PhaseRunning),
		PausedSince:        last.PausedSince,
		PausedSeconds:      last.PausedSeconds,
		SucceededNodes:     record(p.places),
		ObservedGeneration: p.Job.Generation,
	}
	if s.StartTime == nil {
		s.StartTime = p.stamp()
	}
	for _, l := range p.places {
		if l.desired() {
			s.Desired++
		}
		switch l.state {
		case succeeded:
			s.Succeeded++
		case failed:
			s.Failed++
			if len(s.Failures) < v1beta1.MaxFailures {
				s.Failures = append(s.Failures, failureOf(l.name, l.pod))
			}
		case active:
			s.Active++
		case empty, leaving, ignored:
		}
	}
	p.status = s
}

func (p *pass) stamp() *metav1.Time { return new(metav1.NewTime(p.Now)) }

// failFast fails the job for a failed pod if its policy demands it, and reports whether it did.
func (p *pass) failFast() bool {
	if policy := p.Job.Spec.FailurePolicy.Type; p.status.Failed == 0 || policy != "" && policy != v1beta1.FailFast {
		return false
	}
	p.fail(EventFailedPod, fmt.Sprintf("failurePolicy %s: %s failed", v1beta1.FailFast, p.namesOfFailed()))
	return true
}

// fail ends the job. Pods that run count as failed from now on; they are deleted once the status shows it, so that no
// number depends on how far that comes.
func (p *pass) fail(event, message string) {
	s := p.status
	for _, l := range p.places {
		if l.state == active && len(s.Failures) < v1beta1.MaxFailures {
			s.Failures = append(s.Failures, v1beta1.PodFailure{
				Node:    l.name,
				Pod:     l.pod.Name,
				Reason:  FailureGivenUp,
				Message: message,
			})
		}
	}
	s.Active, s.Failed = 0, s.Failed+s.Active
	p.end(v1beta1.PhaseFailed, v1beta1.JobFailed, ReasonFailed, message)
	p.notice(corev1.EventTypeWarning, event, "The job has failed: %s", message)
}

// complete ends the job when no node lacks a pod and none runs one. The job does not wait for a pod that a client has
// deleted: its node may never report that it has gone.
func (p *pass) complete() {
	s := p.status
	if p.never() || s.Desired == 0 || s.Active > 0 || slices.ContainsFunc(p.places, (*place).lacks) {
		return
	}
	message := fmt.Sprintf("%d of %d nodes have succeeded, %d have failed", s.Succeeded, s.Desired, s.Failed)
	if deleted := s.Desired - s.Succeeded - s.Failed; deleted > 0 {
		message += fmt.Sprintf(", the pods of %d nodes were deleted before they ended", deleted)
	}
	p.end(v1beta1.PhaseCompleted, v1beta1.JobComplete, ReasonComplete, message)
	p.notice(corev1.EventTypeNormal, EventComplete, "The job has completed: %s", message)
}

func (p *pass) end(phase v1beta1.BroadcastJobPhase, kind v1beta1.JobConditionType, reason, message string) {
	s := p.status
	s.Phase = phase
	s.Message = message
	s.CompletionTime = p.stamp()
	s.SucceededNodes = nil // no longer needed
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c v1beta1.JobCondition) bool { return c.Type == kind })
	s.Conditions = append(s.Conditions, v1beta1.JobCondition{
		Type:               kind,
		Status:             corev1.ConditionTrue,
		Reason:             reason,
		Message:            message,
		LastProbeTime:      *p.stamp(),
		LastTransitionTime: *p.stamp(),
	})
}

// pauseForFailures pauses the job for failed pods that did not pause it before, and reports whether it does. Pods that
// fail during a pause are acknowledged, too: who ends the pause has read of them.
func (p *pass) pauseForFailures() bool {
	if p.Job.Spec.FailurePolicy.Type != v1beta1.FailPause || !p.Job.Spec.Paused && p.fatal() {
		return false
	}
	known, fresh := p.acknowledged(), false
	var all []string
	for _, l := range p.places {
		if l.state == failed {
			fresh = fresh || !slices.Contains(known, string(l.pod.UID))
			all = append(all, string(l.pod.UID))
		}
	}
	if !fresh {
		return false
	}
	p.plan.Add(action.Step{Name: "pause", Actions: []action.Action{{
		Verb:    action.PatchMetadata,
		Object:  p.Job,
		Reason:  "Pause",
		Message: "because of a failed pod",
		Patches: []action.Patch{{Type: types.MergePatchType, Body: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{v1beta1.AcknowledgedFailuresAnnotation: strings.Join(all, ",")}},
			"spec":     map[string]any{"paused": true},
		}}},
	}}})
	return true
}

// acknowledged returns the UIDs of the failed pods that have paused the job.
func (p *pass) acknowledged() []string {
	text := p.Job.Annotations[v1beta1.AcknowledgedFailuresAnnotation]
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Status returns the next status, given the failed actions; nil leaves it as it is. The message of a job that has not
// ended names the refused writes.
func (p *Plan) Status(done action.Failures) *v1beta1.BroadcastJobStatus {
	text := cmp.Or(done.ScaleError, done.UpdateError)
	if p.status == nil || text == "" || p.status.CompletionTime != nil {
		return p.status
	}
	next := *p.status
	next.Message = strings.TrimPrefix(next.Message+"; "+text, "; ")
	return &next
}
