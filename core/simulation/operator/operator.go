package simulate

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// Planner makes the plan of one pass: what to write, and when to plan again at the latest (0: at the next event). What
// it reads from the view is read-only. A planner that keeps something in memory between passes is a Restarter, too.
type Planner interface {
	Plan(view *View, now time.Time, seed uint64) (steps []action.Step, wake time.Duration)
}

// Restarter is a Planner with a memory.
type Restarter interface {
	// Restart empties the memory, as a new process would.
	Restart()
}

// Reporter is a Planner whose steps write no status: it is asked for the status once they have run, or ended early.
type Reporter interface {
	// Report returns the steps that write the status after the last plan.
	Report(done action.Failures) []action.Step
}

// Follower is a Planner that gets the outcomes of its actions.
type Follower interface {
	Followed(results []progress.Outcome)
}

// Finisher is a Planner that writes more at the end of a pass. What becomes of it has no consequences for the pass.
type Finisher interface {
	// Finally returns what to write.
	Finally() []action.Step
	// Finished gets what became of it, and returns when to plan again at the latest, 0 for never.
	Finished(done progress.Result) time.Duration
}

// Noticer is a Planner whose plans have notices.
type Noticer interface {
	// Notices returns the notices of the last plan, given whether its status was written if there was one to write.
	Notices(statusWritten bool) []action.Notice
}

// PlannerFunc is a Planner without a memory.
type PlannerFunc func(view *View, now time.Time, seed uint64) ([]action.Step, time.Duration)

// Plan calls f.
func (f PlannerFunc) Plan(view *View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
	return f(view, now, seed)
}

// ErrCrash means that the operator crashed while it carried out a plan.
var ErrCrash = errors.New("the operator crashed")

var errFault = errors.New("injected fault")

// Outcome counts what became of the actions of a plan, in the words of package progress.
type Outcome struct {
	// Done actions were written to their end.
	Done int
	// Stale actions met an object in another version than the plan was made from; the next pass decides again.
	Stale int
	// Blocked actions were refused by admission or validation.
	Blocked int
	// Failed actions met another error.
	Failed int
	// Crashed means that the operator died on the way.
	Crashed bool
}

// Idle means that there was nothing to do.
func (o Outcome) Idle() bool { return o == Outcome{} }

// count adds a result. A claim that stays because it is mounted is none: the server was asked for it, and no more.
func (o *Outcome) count(r *progress.Outcome) {
	switch {
	case errors.Is(r.Err, ErrCrash):
		o.Crashed = true
	case r.ClaimMounted():
	case r.State == progress.Done:
		o.Done++
	case r.State == progress.Stale:
		o.Stale++
	case r.State == progress.Blocked:
		o.Blocked++
	default:
		o.Failed++
	}
}

// add adds what became of further actions.
func (o *Outcome) add(more Outcome) {
	o.Done, o.Stale, o.Blocked, o.Failed = o.Done+more.Done, o.Stale+more.Stale, o.Blocked+more.Blocked, o.Failed+more.Failed
	o.Crashed = o.Crashed || more.Crashed
}

// Operator runs the passes of a planner in a world: view, plan, write.
type Operator struct {
	world   *World
	planner Planner
	faults  Faults
	rng     *rand.Rand
	passes  int
	writes  int            // acknowledged requests
	written map[string]int // events of a kind that a view must contain: the operator's own writes
	shown   map[string]int // events of a kind that a view contained
	crashed bool

	memory   *refusals.Tracker // what the server refused
	paces    *progress.Paces   // how far plans came
	time     timeOfPasses
	answers  answers
	workload action.Object // as the last view showed it, nil before
	quiet    *retryJudge
}

// NewOperator makes the operator of the world that runs the planner under the faults.
func NewOperator(w *World, p Planner, f Faults) *Operator {
	w.operators++
	return &Operator{
		world: w, planner: p, faults: f,
		rng:     rand.New(rand.NewPCG(f.Seed, w.options.Seed<<8+w.operators)), //nolint:gosec // a simulation needs no secrecy
		written: map[string]int{}, shown: map[string]int{},
		memory: &refusals.Tracker{}, paces: &progress.Paces{}, time: newTimeOfPasses(w, f), quiet: watchRetries(w, f.Refused),
	}
}

// Writes returns the number of writes that were done so far.
func (o *Operator) Writes() int { return o.writes }

// Restart starts a new process: nothing is remembered. Unless NoFreshness is set, it waits until its caches have seen
// all that was written before, as the leader fence requires.
func (o *Operator) Restart() {
	o.crashed = false
	o.written, o.shown = map[string]int{}, map[string]int{}
	o.memory, o.paces, o.answers = &refusals.Tracker{}, &progress.Paces{}, nil
	for kind, t := range o.world.tables {
		o.written[kind] = len(t.events)
	}
	if r, ok := o.planner.(Restarter); ok {
		r.Restart()
	}
}

// Pass runs one pass: it plans and writes. It returns the outcome and the time after which the planner wants to plan
// again.
func (o *Operator) Pass() (Outcome, time.Duration) {
	o.passes++
	o.world.passes++
	o.actForeign()
	steps, wake := o.planner.Plan(o.look(), o.world.now, o.rng.Uint64())
	o.quiet.checkRecovery(o)
	done, out := o.run(steps, o.time.spent())
	o.follow(&done)
	written, again := o.report(done.Failures(), &out)
	o.notice(written)
	again = shorter(again, o.finish(&out))
	if done.Spent { // it goes on at once
		o.passes--
		wake = shorter(wake, time.Millisecond)
	}
	return out, shorter(wake, shorter(again, done.RetryAfter))
}

// think returns the steps of the plan, with the status that follows when all of them are done.
func think(p Planner, v *View, now time.Time, seed uint64) []action.Step {
	steps, _ := p.Plan(v, now, seed)
	if r, ok := p.(Reporter); ok {
		steps = append(steps, r.Report(action.Failures{})...)
	}
	return steps
}

// Run carries out steps as package execute does, in the way of package progress. A crash ends it at once.
func (o *Operator) Run(steps []action.Step) Outcome {
	done, out := o.run(steps, nil)
	o.follow(&done)
	return out
}

// follow gives the planner the outcomes of its actions.
func (o *Operator) follow(done *progress.Result) {
	if f, ok := o.planner.(Follower); ok && !o.crashed {
		f.Followed(done.Outcomes)
	}
}

// finish writes what the planner wants at the end of a pass, and returns when to plan again at the latest.
func (o *Operator) finish(out *Outcome) time.Duration {
	f, ok := o.planner.(Finisher)
	if !ok || o.crashed {
		return 0
	}
	done, more := o.run(f.Finally(), nil)
	out.add(more)
	if o.crashed {
		return 0
	}
	return f.Finished(done)
}

func (o *Operator) run(steps []action.Step, spent func(share float64) bool) (done progress.Result, out Outcome) {
	var underWay []*attempt
	done = progress.Run(steps, progress.Writer{
		Start: func(r *progress.Outcome) bool {
			if o.crashed {
				return false
			}
			underWay = append(underWay, o.begin(r))
			return true
		},
		Wait: func() *progress.Outcome {
			for {
				i := o.anyOf(len(underWay))
				if t := underWay[i]; t.turn() {
					underWay = slices.Delete(underWay, i, i+1)
					return t.result
				}
			}
		},
		Now: func() time.Time { return o.world.now },
	}, o.settings(spent))
	for i := range done.Outcomes {
		out.count(&done.Outcomes[i])
	}
	return done, out
}

func (o *Operator) settings(spent func(share float64) bool) progress.Options {
	options := progress.Options{Refusals: o.memory, Spent: spent, Paces: o.paces}
	if o.workload != nil {
		options.Workload, options.Generation = memory.KeyOf(o.workload), o.workload.GetGeneration()
	}
	return options
}

// refusals returns what the server has refused for the workload.
func (o *Operator) refusals() action.Refusals {
	if o.workload == nil {
		return nil
	}
	return o.memory.For(memory.KeyOf(o.workload), refusals.Observation{Now: o.world.now, Generation: o.workload.GetGeneration()})
}

// anyOf chooses one of n actions under way: the first one in a calm world.
func (o *Operator) anyOf(n int) int {
	if o.world.options.Calm {
		return 0
	}
	return o.rng.IntN(n)
}
