package node

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
)

// Starts of the messages of a container that is stopped, before its ID: the record by which an agent that has
// restarted knows which run was meant, and whether its hook is over.
const (
	hookPrefix   = "in the preStop hook of "
	recordPrefix = "recreating "
)

// stopSettles is how long a stopped container may still be listed as running.
const stopSettles = 10 * time.Second

// verdict is how far a container is.
type verdict int

const (
	moving    verdict = iota // kubelet is to start it, or it is not ready yet
	stopping                 // it is being stopped
	stoppable                // it is to be stopped
	succeeded                // it was recreated
	failed                   // it cannot be recreated
)

// judged is a container as one pass sees it.
type judged struct {
	verdict verdict
	state   v1beta1.ContainerRecreateState
	run     Container
	wake    time.Duration
}

// judge says how far a container is. The first rule that applies counts.
func (p *pass) judge(c *v1beta1.ContainerToRecreate) judged {
	was := p.before(c.Name)
	j := judged{state: was}
	run, found := p.newest(c.Name)
	j.run = run
	switch {
	case was.Phase == v1beta1.RecreateSucceeded:
		j.verdict = succeeded
		return j
	case was.Phase == v1beta1.RecreateFailed:
		j.verdict = failed
		return j
	case c.StatusContext == nil:
		return j.fail(MessageNoContext)
	case !found:
		return j.missing()
	case run.Exited:
		return j.recreating(p.patience(run.FinishedAt))
	case was.IsKilled && run.ID == recorded(was, c.StatusContext):
		return p.stopped(j)
	case was.IsKilled, endedInHook(was, run), !p.strategy().ForceRecreate && restarted(run, c.StatusContext):
		return p.fresh(j)
	default:
		return p.untouched(j)
	}
}

// missing: the runtime has no such container now.
func (j judged) missing() judged {
	if j.state.IsKilled {
		return j.recreating(lookAgain)
	}
	j.state.Phase, j.state.Message = v1beta1.RecreatePending, MessageNotFound
	j.verdict, j.wake = moving, lookAgain
	return j
}

// recreating: the old run has ended, the new one has not proved itself. It is not stopped any more.
func (j judged) recreating(wake time.Duration) judged {
	if !strings.HasPrefix(j.state.Message, recordPrefix) {
		j.state.Message = ""
	}
	j.state.Phase, j.state.IsKilled = v1beta1.RecreateRecreating, true
	j.verdict, j.wake = moving, wake
	return j
}

func (j judged) fail(message string) judged {
	j.state.Phase, j.state.Message = v1beta1.RecreateFailed, message
	j.verdict, j.wake = failed, 0
	return j
}

// stopped: the run that the status marks is still there. Its hook is over. It is told to stop once by each
// process at most; an agent that was restarted in between takes up what its predecessor has marked.
func (p *pass) stopped(j judged) judged {
	stop, begun := p.Stops[j.run.ID]
	j.verdict = stopping
	switch {
	case !begun, stop.Stage == AfterHook && stop.Request == p.request.UID:
		j.verdict = stoppable
		if !j.run.Running {
			j.verdict, j.wake = moving, lookAgain
		}
	case stop.Stage != Ended: // its end is an event
	case stop.Err != nil && stop.Request == p.request.UID:
		return j.fail(MessageKillFailed + stop.Err.Error())
	case stop.Err != nil: // another request's
		j.verdict = stoppable
	case !p.takesEffect(stop):
		return j.fail(MessageStillRuns)
	default:
		j.wake = lookAgain
	}
	return j
}

// fresh: another run than the one that is meant. It counts when the manager has seen the same run ready.
func (p *pass) fresh(j judged) judged {
	j = j.recreating(p.patience(j.run.StartedAt))
	if !j.run.Running || !p.seenReady(j.run) {
		return j
	}
	least := time.Duration(p.strategy().MinStartedSeconds) * time.Second
	if ran := p.Now.Sub(j.run.StartedAt); least > 0 && ran <= least {
		j.wake = min(least-ran+time.Millisecond, lookAgainAtMost)
		return j
	}
	j.state.Phase, j.state.Message = v1beta1.RecreateSucceeded, ""
	j.verdict, j.wake = succeeded, 0
	return j
}

// untouched: the run that is meant. One that does not run yet is about to.
func (p *pass) untouched(j judged) judged {
	j.state.Phase, j.state.IsKilled = v1beta1.RecreatePending, false
	if j.state.Message != hookPrefix+j.run.ID {
		j.state.Message = ""
	}
	stop, begun := p.Stops[j.run.ID]
	mine := stop.Request == p.request.UID
	switch {
	case !j.run.Running:
		j.verdict, j.wake = moving, lookAgain
	case begun && mine && stop.Stage == AfterHook:
		j.verdict = stoppable
	case begun && mine && stop.Stage == InHook:
		j.verdict = stopping // its end is an event
	case begun && (mine || p.takesEffect(stop)):
		j.verdict, j.wake = stopping, lookAgain // the mark is not in this view yet, or another request's stop has an effect soon
	default:
		j.verdict = stoppable
	}
	return j
}

// takesEffect says that the stop is under way or that the runtime has just done it.
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

// newest returns the last run of the container. A later run has a higher restart count whatever the clock did.
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

// seenReady says that the manager has seen this run ready.
func (p *pass) seenReady(run Container) bool {
	return slices.ContainsFunc(p.request.Status.ContainerStatusSnapshot, func(s v1beta1.ContainerStatusSnapshot) bool {
		return s.Name == run.Name && s.ContainerID == run.ID && s.Ready
	})
}

// patience returns how long to leave a container alone that has not changed for a while: kubelet's back-off takes
// minutes, and somebody who never starts it again takes for ever.
func (p *pass) patience(since time.Time) time.Duration {
	if since.IsZero() {
		return lookAgain
	}
	return min(max(p.Now.Sub(since)/4, lookAgain), lookAgainAtMost)
}

// restarted says that the run is not the one of the time of the request.
func restarted(run Container, context *v1beta1.ContainerStatusContext) bool {
	return run.ID != context.ContainerID || run.RestartCount > context.RestartCount
}

// endedInHook says that the run is another one than that whose hook had begun.
func endedInHook(was v1beta1.ContainerRecreateState, run Container) bool {
	id, begun := strings.CutPrefix(was.Message, hookPrefix)
	return begun && run.ID != id
}

// mark says that the run is told to stop.
func mark(state *v1beta1.ContainerRecreateState, run string) {
	state.Phase, state.IsKilled, state.Message = v1beta1.RecreateRecreating, true, recordPrefix+run
}

// recorded returns the run that the state marks. Marks of other agents have no record and mean the run of the time of
// the request.
func recorded(state v1beta1.ContainerRecreateState, context *v1beta1.ContainerStatusContext) string {
	if id, ok := strings.CutPrefix(state.Message, recordPrefix); ok {
		return id
	}
	return context.ContainerID
}
