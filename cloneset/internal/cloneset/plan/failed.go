package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/pods/lifecycle"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
	"github.com/flotilla-project/flotilla/core/workloads/failures"
	"github.com/flotilla-project/flotilla/core/workloads/model"
	"github.com/flotilla-project/flotilla/core/workloads/podupdate"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

// mostFailed is how many failed pods stay to be looked at.
const mostFailed = 10

// RetryFailedAt notes the pods that have failed and returns when others may take their place, for Snapshot. The
// pauses are pauses of the whole set: no pod of it has a place of its own.
func RetryFailedAt(known *failures.Memory, seen model.Snapshot[*v1beta1.CloneSet]) time.Time {
	update := ""
	if seen.Chosen.Update != nil {
		update = seen.Chosen.Update.Name
	}
	return known.RetryAt(seen.Set, update, seen.Pods, func(*corev1.Pod) string { return "" }, seen.Now)[""]
}

// awaitRetry has new pods wait where pods fail one after the other, and reports whether they do.
func (p *pass) awaitRetry() bool {
	wait := p.RetryFailedAt.Sub(p.Now)
	if wait <= 0 {
		return false
	}
	p.plan.RequeueWithin(wait)
	p.plan.Wait(failures.WaitReason, "", "%s", failures.Message("of the set", p.RetryFailedAt))
	return true
}

// limitFailedPods deletes the oldest failed pods, except pods that the preDelete hook holds. The remaining ones show
// why pods fail.
func limitFailedPods(p *pass) {
	failed := slices.DeleteFunc(p.failedPods(), func(o podstate.State) bool { return lifecycle.Hooked(preDelete(p.Set), o.Pod) })
	if len(failed) <= mostFailed {
		return
	}
	step := action.Step{Name: stepScale}
	for _, o := range failed[:len(failed)-mostFailed] { // the oldest first
		a := p.updates.Delete(o, podupdate.DeleteReason{
			Reason:  "FailedLimit",
			Message: fmt.Sprintf("more than %d pods have failed", mostFailed),
			Event: &action.Event{
				Succeeded: EventDeleted,
				Note:      "succeed to delete pod " + o.Pod.Name,
				Failed:    EventDeleteFailed,
			},
		})
		p.plan.Put(&step, a)
	}
	p.plan.Add(step)
}

// failedPods are the pods in phase Failed that are not being deleted, the oldest first.
func (p *pass) failedPods() []podstate.State {
	return slices.DeleteFunc(slices.Clone(p.inactive), func(o podstate.State) bool {
		return o.Terminating || o.Pod.Status.Phase != corev1.PodFailed
	})
}

// warnAboutFailedPods warns users why pods have failed, in the pass in which others take their place; the pods
// themselves are left to be looked at. It is not recorded which failed pod a missing one replaces, so the warnings
// name the pods that failed last.
func warnAboutFailedPods(p *pass) {
	if p.plan.Err != nil || p.RetryFailedAt.After(p.Now) {
		return
	}
	failed := p.failedPods()
	slices.SortStableFunc(failed, func(a, b podstate.State) int { return b.ReadySince.Compare(a.ReadySince) })
	for _, o := range failed[:min(int(p.currentBalance().missing), len(failed))] {
		p.plan.Notices = append(p.plan.Notices, action.Notice{
			Type:    corev1.EventTypeWarning,
			Reason:  EventPodFailed,
			Related: o.Pod,
			Note:    fmt.Sprintf("pod %s has failed: %s", o.Pod.Name, whyFailed(o.Pod)),
		})
	}
}

// noteScaleUpLimit reports to users, once, that only so many pods are created for now: while condition ScaleUpLimited
// stands for the present spec, it does not report again.
func (p *pass) noteScaleUpLimit(creations int32) {
	if conditions.Get(p.Set.Status.Conditions, v1beta1.CloneSetScaleUpLimited) != nil && p.Set.Status.ObservedGeneration == p.Set.Generation {
		return
	}
	p.plan.Notices = append(p.plan.Notices, action.Notice{
		Type:       corev1.EventTypeWarning,
		Reason:     EventScaleUpLimited,
		Note:       fmt.Sprintf("scaleUp is limited because of scaleStrategy.maxUnavailable, limit: %d", creations),
		WithStatus: true,
	})
}

// warnAboutDeadline warns users that the progress deadline has passed, in the pass with the first status that shows
// it.
func warnAboutDeadline(s Snapshot, todo *Plan) {
	old := conditions.Get(s.Set.Status.Conditions, v1beta1.CloneSetProgressing)
	if deadline := progressDeadline(s.Set); deadline == 0 || old == nil || old.Reason != v1beta1.ReasonUpdated || s.Now.Before(old.LastUpdateTime.Add(deadline)) {
		return
	}
	stalled := conditions.Get(Status(s, *todo, action.Failures{}).Conditions, conditions.Stalled)
	if stalled == nil || stalled.Reason != v1beta1.ReasonDeadlineExceeded {
		return
	}
	todo.Notices = append(todo.Notices, action.Notice{
		Type:       corev1.EventTypeWarning,
		Reason:     stalled.Reason,
		Note:       stalled.Message,
		WithStatus: true,
	})
}

// whyFailed is the reason and message that the kubelet gives for the pod, and the exit codes of its containers.
func whyFailed(pod *corev1.Pod) string {
	var reasons []string
	for _, text := range []string{pod.Status.Reason, pod.Status.Message} {
		if text != "" {
			reasons = append(reasons, text)
		}
	}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if end := list[i].State.Terminated; end != nil && end.ExitCode != 0 {
				reasons = append(reasons, fmt.Sprintf("container %s ended with exit code %d (%s)", list[i].Name, end.ExitCode, end.Reason))
			}
		}
	}
	if len(reasons) == 0 {
		return "the kubelet reported no reason"
	}
	return strings.Join(reasons, "; ")
}
