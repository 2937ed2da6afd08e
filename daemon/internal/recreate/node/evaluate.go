package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// stopSettles is for how long a stopped container may still be listed as running.
const stopSettles = 10 * time.Second

// standing is how far a container is.
type standing int

const (
	moving    standing = iota // kubelet is to start it, or it is not ready yet
	stopping                  // it is being stopped
	stoppable                 // it is to be stopped
	succeeded                 // it was recreated
	failed                    // it cannot be recreated
)

// evaluated is a container with its standing, as one pass sees it.
type evaluated struct {
	standing standing
	state    v1beta1.ContainerRecreateState
	run      Container
	wake     time.Duration
}

// evaluate returns how far a container is: rules, in order of evaluation.
func (p *pass) evaluate(c *v1beta1.ContainerToRecreate) evaluated {
	was := p.before(c.Name)
	j := evaluated{state: was}
	run, found := p.newest(c.Name)
	j.run = run
	switch {
	case was.Phase == v1beta1.RecreateSucceeded:
		j.standing = succeeded
		return j
	case was.Phase == v1beta1.RecreateFailed:
		j.standing = failed
		return j
	case c.StatusContext == nil:
		return j.fail(MessageNoContext)
	case !found:
		return j.missing()
	case run.Exited:
		return j.recreating(p.backoffWait(run.FinishedAt))
	case was.IsKilled && run.ID == recorded(was, c.StatusContext):
		return p.stopped(j)
	case was.IsKilled, endedInHook(was, run), !p.strategy().ForceRecreate && restarted(run, c.StatusContext):
		return p.fresh(j)
	default:
		return p.untouched(j)
	}
}

// missing: the runtime has no such container now.
func (j evaluated) missing() evaluated {
	if j.state.IsKilled {
		return j.recreating(lookAgain)
	}
	j.state.Phase = v1beta1.RecreatePending
	j.state.ContainerID = ""
	j.state.Message = MessageNotFound
	j.standing, j.wake = moving, lookAgain
	return j
}

// recreating: the old run has ended, the new one is not ready yet. It is not stopped any more.
func (j evaluated) recreating(wake time.Duration) evaluated {
	if !j.state.IsKilled {
		j.state.ContainerID = ""
	}
	j.state.Phase = v1beta1.RecreateRecreating
	j.state.IsKilled = true
	j.state.Message = ""
	j.standing, j.wake = moving, wake
	return j
}

func (j evaluated) fail(message string) evaluated {
	j.state.Phase = v1beta1.RecreateFailed
	j.state.ContainerID = ""
	j.state.Message = message
	j.standing, j.wake = failed, 0
	return j
}

// stopped: the run that the status marks is still there. Its hook is over. Each process sends the stop to the runtime once
// at most; an agent that was restarted in between takes up the runs that its predecessor has marked.
func (p *pass) stopped(j evaluated) evaluated {
	stop, begun := p.Stops[j.run.ID]
	j.standing = stopping
	switch {
	case !begun, stop.Stage == AfterHook && stop.Request == p.request.UID:
		j.standing = stoppable
		if !j.run.Running {
			j.standing, j.wake = moving, lookAgain
		}
	case stop.Stage != Ended: // its end is an event
	case stop.Err != nil && stop.Request == p.request.UID:
		return j.fail(MessageKillFailed + stop.Err.Error())
	case stop.Err != nil: // another request's
		j.standing = stoppable
	case !p.takesEffect(stop):
		return j.fail(MessageStillRuns)
	default:
		j.wake = lookAgain
	}
	return j
}

// fresh: another run than the one that is meant. It counts when the manager has seen the same run ready.
func (p *pass) fresh(j evaluated) evaluated {
	j = j.recreating(p.backoffWait(j.run.StartedAt))
	if !j.run.Running || !p.seenReady(j.run) {
		return j
	}
	least := action.Seconds(p.strategy().MinStartedSeconds)
	if ran := p.Now.Sub(j.run.StartedAt); least > 0 && ran <= least {
		j.wake = min(least-ran+time.Millisecond, lookAgainAtMost)
		return j
	}
	j.state.Phase = v1beta1.RecreateSucceeded
	j.state.ContainerID = ""
	j.standing, j.wake = succeeded, 0
	return j
}

// untouched: the run that is meant. One that does not run yet is about to.
func (p *pass) untouched(j evaluated) evaluated {
	j.state.Phase = v1beta1.RecreatePending
	j.state.IsKilled = false
	j.state.Message = ""
	stop, begun := p.Stops[j.run.ID]
	mine := stop.Request == p.request.UID
	switch {
	case !j.run.Running:
		j.standing, j.wake = moving, lookAgain
	case begun && mine && stop.Stage == AfterHook:
		j.standing = stoppable
	case begun && mine && stop.Stage == InHook:
		j.standing = stopping // its end is an event
	case begun && (mine || p.takesEffect(stop)):
		j.standing, j.wake = stopping, lookAgain // the mark is not in this view yet, or another request's stop has an effect soon
	default:
		j.standing = stoppable
	}
	return j
}

// takesEffect reports whether the stop is under way or the runtime has just done it.
func (p *pass) takesEffect(stop Stop) bool {
	return stop.Stage != Ended || stop.Err == nil && p.Now.Sub(stop.At) <= stopSettles
}

func (p *pass) before(name string) v1beta1.ContainerRecreateState {
	for _, s := range p.request.Status.ContainerRecreateStates {
		if s.Name == name {
			return s
		}
	}
	return v1beta1.ContainerRecreateState{Name: name, Phase: v1beta1.RecreatePending}
}

// newest returns the last run of the container. A later run has a higher restart count, whatever the clock did.
func (p *pass) newest(name string) (Container, bool) {
	var runs []Container
	for _, c := range p.Containers {
		if c.Name == name {
			runs = append(runs, c)
		}
	}
	if len(runs) == 0 {
		return Container{}, false
	}
	return slices.MaxFunc(runs, func(a, b Container) int {
		return cmp.Or(cmp.Compare(a.RestartCount, b.RestartCount), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}), true
}

// seenReady reports whether the manager has seen this run ready.
func (p *pass) seenReady(run Container) bool {
	return slices.ContainsFunc(p.request.Status.ContainerStatusSnapshot, func(s v1beta1.ContainerStatusSnapshot) bool {
		return s.Name == run.Name && s.ContainerID == run.ID && s.Ready
	})
}

// backoffWait returns how long not to look at a container that has not changed for a while: the kubelet's back-off
// takes minutes, and the container may never be started again.
func (p *pass) backoffWait(since time.Time) time.Duration {
	if since.IsZero() {
		return lookAgain
	}
	return min(max(p.Now.Sub(since)/4, lookAgain), lookAgainAtMost)
}

// restarted reports whether the run is not the one at the time of the request.
func restarted(run Container, context *v1beta1.ContainerStatusContext) bool {
	return run.ID != context.ContainerID || run.RestartCount > context.RestartCount
}

// endedInHook reports whether the hook had begun in another run than this one.
func endedInHook(was v1beta1.ContainerRecreateState, run Container) bool {
	return inHook(was) && run.ID != was.ContainerID
}

// inHook reports whether the state marks a run that has begun its hook and did not get its stop yet.
func inHook(state v1beta1.ContainerRecreateState) bool {
	return !state.IsKilled && state.ContainerID != ""
}

// mark records that the run gets its stop.
func mark(state *v1beta1.ContainerRecreateState, run string) {
	state.Phase = v1beta1.RecreateRecreating
	state.IsKilled = true
	state.ContainerID = run
	state.Message = ""
}

// recorded returns the run that the state marks. Marks of other agents have no record and mean the run of the time of
// the request.
func recorded(state v1beta1.ContainerRecreateState, context *v1beta1.ContainerStatusContext) string {
	return cmp.Or(state.ContainerID, context.ContainerID)
}
