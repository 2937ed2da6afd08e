package progress

import (
	"errors"
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// Writer writes actions, several at a time.
type Writer struct {
	// Start begins to write the action of the outcome and reports whether it did. Nothing more is started once it returns
	// false.
	Start func(r *Outcome) bool
	// Wait returns one of the outcomes that were started and not returned yet, once its action has ended.
	Wait func() *Outcome
	// Now is the time.
	Now func() time.Time
}

// Options name the workload of a plan and the bounds of carrying it out.
type Options struct {
	// Workload is the object that the plan is for, and Generation the generation that the plan was made from.
	Workload   memory.Key
	Generation int64
	// Refusals records the actions that are done and those that are not.
	Refusals *refusals.Tracker
	// Parallelism bounds the actions under way; 0 means DefaultParallelism.
	Parallelism int
	// Spent reports whether this share of the time of the pass, 1 for all of it, is used up: actions that have not begun
	// by then are left to the next pass. One action is begun in any case. Nil means never.
	Spent func(share float64) bool
	// Paces remembers how far the steps came when their time was used up; nil forgets it.
	Paces *Paces
}

// Run carries out the steps in order.
//
// A step runs to its end unless the server cannot be reached or fails, or several of its actions are refused in a row,
// or the step starts slowly and an action of it did not succeed for another reason than that its name is taken. A step
// with an error ends the plan; so does one in which an object had gone or appeared, or in which an action was refused or
// met a changed object. The steps after it run if that action is independent or a refused deletion, or if the step is
// optional. An action that is outdated when its turn comes is stale.
// Refused actions are remembered, so that they are not tried again before a pause is over.
//
// When the time of the pass is used up nothing more is begun, and half of it ends a step on which no other depends, so
// that the other half is for the steps after it. The next pass makes a new plan, continues where this one stopped, and
// begins with as many actions under way. It does so too after a step that leaves out some of the wanted actions.
func Run(steps []action.Step, w Writer, o Options) Result {
	var out Result
	r := run{Writer: w, Options: o}
	for i := range steps {
		share := 1.0
		if steps[i].Apart && i < len(steps)-1 {
			share = 0.5
		}
		results := r.step(&steps[i], share)
		now := w.Now()
		for k := range results {
			pause := remember(&results[k], o, now)
			out.add(results[k], pause)
		}
		out.Incomplete = out.Incomplete || len(results) < len(steps[i].Actions)
		if endsPlan(results) && !steps[i].Optional {
			out.Incomplete = out.Incomplete || i < len(steps)-1
			break
		}
		out.Spent = out.Spent || r.spent
		if r.spent && share == 1 {
			break
		}
	}
	return out
}

// run is one Run.
type run struct {
	Writer
	Options
	begun bool // an action
	spent bool // the time of the last step, before all that is wanted had begun
}

// step runs the actions of one step until that share of the time is used up, and returns the outcomes of those that were
// tried, in order.
func (r *run) step(s *action.Step, share float64) []Outcome {
	r.spent = false
	results := make([]Outcome, len(s.Actions))
	p := newPace(s.SlowStart, r.Parallelism)
	p.resume(r.Paces.reached(r.Workload, r.Generation, s.Name))
	started := 0
	for {
		for started < len(results) && p.mayStart() {
			r.spent = r.begun && r.Spent != nil && r.Spent(share)
			results[started].Action = &s.Actions[started]
			if r.spent || !r.Start(&results[started]) {
				p.stopped = true
				break
			}
			p.started()
			r.begun = true
			started++
		}
		if p.underWay == 0 {
			r.spent = r.spent || s.More && !p.stopped
			r.leave(s, p, started)
			return results[:started]
		}
		p.ended(r.Wait())
	}
}

// leave remembers how far the step came. If nothing of it was begun for lack of time, the remembered pace stays.
func (r *run) leave(s *action.Step, p *pace, begun int) {
	switch {
	case r.spent && begun == 0:
	case r.spent && !p.failed:
		r.Paces.keep(r.Workload, r.Generation, s.Name, p.allowed)
	default:
		r.Paces.keep(r.Workload, r.Generation, s.Name, 0)
	}
}

// endsPlan reports whether the plan ends after a step with the outcomes.
func endsPlan(results []Outcome) bool {
	for i := range results {
		r := &results[i]
		switch {
		case r.State == Blocked && (r.Action.Verb == action.Delete || r.ClaimMounted()): // nothing builds on it
		case r.State == Failed, r.gone, r.State != Done && !r.Action.Independent:
			return true
		}
	}
	return false
}

// remember records the outcome of an action in the tracker, and returns the pause before another try.
func remember(r *Outcome, o Options, now time.Time) (pause time.Duration) {
	switch {
	case r.State == Done:
		o.Refusals.RecordSuccess(o.Workload, r.Action)
		return 0
	case errors.Is(r.Err, ErrExpired): // the server was not asked
		return time.Second
	case r.busy:
		return r.retryAfter
	}
	pause, r.told = o.Refusals.RecordFailure(o.Workload, o.Generation, r.Action, r.failure(), now)
	return pause
}
