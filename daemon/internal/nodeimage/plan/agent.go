package plan

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/internal/nodeimage/tally"
)

// agentTimeout is how much longer than a pull may take the manager waits for a report of the agent.
const agentTimeout = 10 * time.Minute

// agent is the activity of a node's agent, as the NodeImage shows it. A tag that waits for its turn may wait long without
// a report of its own: the agent is there if other pulls run, and end within their time.
type agent struct {
	Snapshot
	// sign is the last sign of life: when a pull began, or ended otherwise than by the manager.
	sign time.Time
	// busy is until when the pulls under way may last.
	busy time.Time
}

// watchAgent reads the states of all pulls.
func watchAgent(s Snapshot) agent {
	a := agent{Snapshot: s}
	for name := range s.Image.Spec.Images {
		states := s.Image.Status.ImageStatuses[name].Tags
		byTag := make(map[string]*v1beta1.ImageTagStatus, len(states))
		for i := range states {
			byTag[states[i].Tag] = &states[i]
		}
		for i := range s.Image.Spec.Images[name].Tags {
			tag := &s.Image.Spec.Images[name].Tags[i]
			if state := byTag[tag.Tag]; state != nil && state.Version == tag.Version && tag.CreatedAt != nil {
				a.look(name, tag, state)
			}
		}
	}
	return a
}

// look takes the state of one pull into account.
func (a *agent) look(image string, tag *v1beta1.ImageTagSpec, state *v1beta1.ImageTagStatus) {
	round := tally.Key{Image: image, Tag: tag.Tag, Version: tag.Version}
	if end := state.CompletionTime; end != nil && !givenUp(state) {
		a.sign = later(a.sign, seenAt(a.Seen.Ended, round, tag, end.Time, a.Now))
	}
	if state.StartTime == nil {
		return
	}
	began := seenAt(a.Seen.Began, round, tag, state.StartTime.Time, a.Now)
	a.sign = later(a.sign, began)
	if state.CompletionTime == nil {
		a.busy = later(a.busy, began.Add(longest(tag)+agentTimeout))
	}
}

// patience returns until when the manager waits for the next report about a tag, and the tag's message afterwards. Both are
// empty if it waits without end. The state is the state of this round, nil before the agent has reported any.
func (a *agent) patience(image string, tag *v1beta1.ImageTagSpec, state *v1beta1.ImageTagStatus) (limit time.Time, message string) {
	if tag.CreatedAt == nil {
		return limit, ""
	}
	if state == nil {
		return tag.CreatedAt.Add(agentTimeout), MessageSilent
	}
	if state.CompletionTime != nil || tag.PullPolicy == nil || tag.PullPolicy.ActiveDeadlineSeconds == nil {
		return limit, ""
	}
	since := later(tag.CreatedAt.Time, a.sign)
	busy := a.busy
	message = MessageSilent
	switch {
	case state.Phase != v1beta1.ImageWaiting:
		since = tag.CreatedAt.Time
		busy = time.Time{}
		message = MessageDeadline
		if state.StartTime != nil {
			since = seenAt(a.Seen.Began, tally.Key{Image: image, Tag: tag.Tag, Version: tag.Version}, tag, state.StartTime.Time, a.Now)
		}
	case state.Message != "":
		message = MessageNotBegun + ": " + state.Message
	}
	return later(since.Add(action.Seconds(*tag.PullPolicy.ActiveDeadlineSeconds)+agentTimeout), busy), message
}

// longest returns how long a pull may take: its deadline, or all attempts and the pauses between them.
func longest(tag *v1beta1.ImageTagSpec) time.Duration {
	if tag.PullPolicy != nil && tag.PullPolicy.ActiveDeadlineSeconds != nil {
		return action.Seconds(*tag.PullPolicy.ActiveDeadlineSeconds)
	}
	return action.Seconds(tag.PullPolicy.LongestSeconds())
}

// givenUp reports whether the manager may have ended a pull: then its end is no sign of the agent.
func givenUp(state *v1beta1.ImageTagStatus) bool {
	return state.Phase == v1beta1.ImageFailed && (state.StartTime == nil || state.Message == MessageDeadline)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
