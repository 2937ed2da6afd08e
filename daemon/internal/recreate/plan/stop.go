package plan

import (
	"slices"
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

const (
	// defaultGrace is the time for hook and stop of a request that does not set one.
	defaultGrace = 30 * time.Second
	// stopSlack is for the signal after a hook that took all of the grace, and for the kubelet to report the end.
	stopSlack = 10 * time.Second
)

// awaitStop keeps the pod out of service while a stop that the request has begun continues in it, and reports whether one
// does: until the pod shows that it has ended, and to the end of the grace at most, for an agent that is not there ends
// nothing.
func (p *pass) awaitStop() bool {
	if p.pod() == nil || !slices.ContainsFunc(p.Request.Status.ContainerRecreateStates, p.stops) {
		return false
	}
	since, seen := p.recall(CompletionSeenAnnotation)
	if !seen {
		p.patchRequest(stepSeen, "StopUnderWay", "the pod stays not ready until the stop has ended", map[string]any{
			"annotations": map[string]any{CompletionSeenAnnotation: p.moment(p.Now)},
		})
		return true
	}
	grace := defaultGrace
	if s := p.Request.Spec.Strategy; s != nil && s.TerminationGracePeriodSeconds != nil {
		grace = action.Seconds(*s.TerminationGracePeriodSeconds)
	}
	left := grace + stopSlack - p.Now.Sub(since)
	p.plan.RequeueWithin(left)
	return left > 0
}

// stops reports whether a state marks a stop and the pod still shows the container that it is about. A stop before its
// signal is given up when its request is deleted.
func (p *pass) stops(state v1beta1.ContainerRecreateState) bool {
	if state.Phase == v1beta1.RecreateSucceeded || state.Phase == v1beta1.RecreateFailed || state.ContainerID == "" ||
		!state.IsKilled && p.Request.DeletionTimestamp != nil {
		return false
	}
	status := statusOf(p.Pod, state.Name)
	return status != nil && status.ContainerID == state.ContainerID && status.State.Terminated == nil
}
