package refusals

import (
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
)

// target is an object to which a write of one purpose was refused. The table of the package has its states; a target in
// none of transient, byBudget and late is Refused.
type target struct {
	transient bool // a conflict that may end soon, perhaps because the snapshot was outdated
	byBudget  bool // a budget has refused last, and never after the pod had left service
	late      bool // refused after other writes of the action, and for good

	unanswered bool // a first write may have been done
	relievable bool // a write to one of several pods: another webhook may wait for one more that is available

	tries  int
	before int // refusals of the object for other purposes between those for this one
	ahead  int // by how many tries the action was ahead of the streak when a budget began to refuse it

	tried    time.Time
	turn     time.Time // when it may be tried again
	since    time.Time // of the first refusal that users are to know of
	version  string    // with which a transient one was refused; empty: another version changes nothing
	revision string    // of the action
	message  string
	tooSmall action.NodeTooSmall
}

// fail notes one more failure. It reports whether that is a conflict which a newer version of the object may end and
// which has nothing to do with other objects.
func (t *target) fail(a *action.Action, f Failure, now time.Time) (own bool) {
	if f.Overtaken && (t.tries == 0 || t.transient) && t.version != a.Object.GetResourceVersion() {
		t.tries = 0 // the object changes, so that this is no evidence about the next try
	}
	t.tries++
	t.revision = a.Revision
	t.tried = now
	t.message = f.Message
	t.unanswered = t.unanswered || f.MayHaveSucceeded
	// Once back in service, a pod would leave it again before the budget refuses the same write.
	t.late = t.late || f.Late || f.ByBudget && a.OutOfService
	t.byBudget = f.ByBudget && !t.late
	t.version = ""
	t.judgeConflict(f, now)
	t.judgeNode(a, f, now)
	own = t.transient && (f.Isolated || a.Verb != action.Create)
	if own {
		t.version = a.Object.GetResourceVersion()
	}
	return own
}

// judgeConflict notes whether all failures so far are conflicts that may end soon, or since when users are to know.
func (t *target) judgeConflict(f Failure, now time.Time) {
	t.transient = f.Conflict && (f.Overtaken || t.tries <= toleratedConflicts)
	if !t.transient && t.since.IsZero() {
		t.since = now
	}
}

// judgeNode notes since when the node has been too small for the revision.
func (t *target) judgeNode(a *action.Action, f Failure, now time.Time) {
	switch {
	case f.Conflict || f.MayHaveSucceeded: // the server has not looked at the node
	case !f.NodeTooSmall:
		t.tooSmall = action.NodeTooSmall{}
	case t.tooSmall.Since.IsZero() || t.tooSmall.Revision != a.Revision:
		t.tooSmall = action.NodeTooSmall{Since: now, Revision: a.Revision}
	}
}

// refusals are those that the pause grows with. A budget's answer depends on other pods: it is asked for all pods after
// growing pauses, the streak being the number of them, which begin again when it grants one. If the action was refused for
// another reason before, the pauses continue from there.
func (t *target) refusals(streak int) int {
	if t.byBudget {
		return t.before + t.ahead + streak
	}
	return t.before + t.tries
}

// pause is the one after the present refusal of an action that waits for no turn.
func (t *target) pause(late bool, streak int) time.Duration {
	if late {
		return backoff(firstDryRunPause, t.refusals(streak))
	}
	return backoff(firstPause, t.refusals(streak))
}

// endTurns has the action wait as if it were alone, and its object had been written for nothing else.
func (t *target) endTurns(streak int) {
	t.before, t.ahead = 0, 0
	if turn := t.tried.Add(t.pause(t.late, streak)); turn.Before(t.turn) {
		t.turn = turn
	}
}

// backoff is the pause after the nth refusal.
func backoff(first time.Duration, n int) time.Duration {
	pause := first
	for ; n > 1 && pause < MaxPause; n-- {
		pause *= 2
	}
	return min(pause, MaxPause)
}
