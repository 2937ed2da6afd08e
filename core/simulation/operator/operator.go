package operator

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
)

// Settings are what an operator meets besides its plan. The zero value has none of it: views show the present, and requests
// reach the server at once.
type Settings struct {
	// Actor is the name under which the operator writes; empty means cluster.OperatorActor.
	Actor string
	// Rand decides what is left to chance; nil takes the seed of the world.
	Rand *rand.Rand
	// Look returns the view of a pass; nil shows the present, as a cache does.
	Look func() *cluster.View
	// Spent returns the function that ends a pass whose time is used up; nil never does.
	Spent func() func(share float64) bool
	// Coalesce lets all that is due at one moment happen before the next pass, as a work queue does while a pass runs. After a
	// write the operator thinks again at once.
	Coalesce bool
	// Planned is called when a pass has made its plan. Optional.
	Planned func()
	// Executed is called when a pass has carried out its plan, before the status. Optional.
	Executed func(*progress.Result)
	// Send carries a request to the server, by Operator.Deliver, or returns an error instead. With ErrCrash the operator is
	// dead until it restarts. Nil delivers all.
	Send func(Request) (action.Object, error)
	// Ended is called with the outcome of each action. Optional.
	Ended func(*progress.Outcome)
	// Noticed is called with each notice of a plan. Optional.
	Noticed func(action.Notice)
}

// Operator runs the passes of a planner in a world: view, plan, write.
type Operator struct {
	world    *cluster.World
	planner  Planner
	settings Settings
	rng      *rand.Rand
	writes   int // acknowledged requests
	dead     bool

	memory   *refusals.Tracker // what the server refused
	paces    *progress.Paces   // how far plans came
	workload action.Object     // as the last view showed it, nil before
}

// New makes an operator of the world that runs the planner.
func New(w *cluster.World, p Planner, settings Settings) *Operator {
	settings.Actor = cmp.Or(settings.Actor, cluster.OperatorActor)
	o := &Operator{
		world:    w,
		planner:  p,
		settings: settings,
		rng:      settings.Rand,
		memory:   &refusals.Tracker{},
		paces:    &progress.Paces{},
	}
	if o.rng == nil {
		o.rng = rand.New(rand.NewPCG(w.Options.Seed, 2)) //nolint:gosec // a simulation needs no secrecy
	}
	return o
}

// Writes returns the number of writes that were done so far.
func (o *Operator) Writes() int { return o.writes }

// Dead reports whether the operator crashed and has not restarted.
func (o *Operator) Dead() bool { return o.dead }

// Restart starts a new process: nothing is remembered.
func (o *Operator) Restart() {
	o.dead = false
	o.memory, o.paces = &refusals.Tracker{}, &progress.Paces{}
	if r, ok := o.planner.(Restarter); ok {
		r.Restart()
	}
}

// Pass runs one pass: it plans and writes. It returns the outcome and the time after which the planner wants to plan
// again.
func (o *Operator) Pass() (Outcome, time.Duration) {
	view := o.look()
	steps, wake := o.planner.Plan(view, o.world.Now(), o.rng.Uint64())
	if o.settings.Planned != nil {
		o.settings.Planned()
	}
	var spent func(share float64) bool
	if o.settings.Spent != nil {
		spent = o.settings.Spent()
	}
	done, out := o.Run(steps, spent)
	o.Follow(&done)
	if o.settings.Executed != nil {
		o.settings.Executed(&done)
	}
	written, again := o.report(done.Failures(), &out)
	o.notice(written)
	again = shorter(again, o.finish(&out))
	if done.Spent { // it goes on at once
		wake = shorter(wake, time.Millisecond)
	}
	return out, shorter(wake, shorter(again, done.RetryAfter))
}

func (o *Operator) look() *View {
	if o.settings.Look != nil {
		return &View{View: o.settings.Look(), operator: o}
	}
	return &View{View: o.world.CacheView(nil), operator: o}
}

// notice passes the notices of the plan on.
func (o *Operator) notice(statusWritten bool) {
	n, ok := o.planner.(Noticer)
	if !ok || o.settings.Noticed == nil {
		return
	}
	for _, notice := range n.Notices(statusWritten) {
		o.settings.Noticed(notice)
	}
}

// Think returns the steps that the planner plans now for what the world has, with the status that follows when all of them
// are done.
func Think(w *cluster.World, p Planner, seed uint64) []action.Step {
	steps, _ := p.Plan(&View{View: w.CacheView(nil)}, w.Now(), seed)
	if r, ok := p.(Reporter); ok {
		steps = append(steps, r.Report(action.Failures{})...)
	}
	return steps
}

// Follow gives the planner the outcomes of its actions.
func (o *Operator) Follow(done *progress.Result) {
	if f, ok := o.planner.(Follower); ok && !o.dead {
		f.Followed(done.Outcomes)
	}
}

// finish writes what the planner wants at the end of a pass, and returns when to plan again at the latest.
func (o *Operator) finish(out *Outcome) time.Duration {
	f, ok := o.planner.(Finisher)
	if !ok || o.dead {
		return 0
	}
	done, more := o.Run(f.Finally(), nil)
	out.add(more)
	if o.dead {
		return 0
	}
	return f.Finished(done)
}

// Run carries out steps as package execute does, in the way of package progress. A crash ends it at once.
func (o *Operator) Run(steps []action.Step, spent func(share float64) bool) (done progress.Result, out Outcome) {
	var underWay []*attempt
	done = progress.Run(steps, progress.Writer{
		Start: func(r *progress.Outcome) bool {
			if o.dead {
				return false
			}
			underWay = append(underWay, o.begin(r))
			return true
		},
		Wait: func() *progress.Outcome {
			for {
				i := o.anyOf(len(underWay))
				if t := underWay[i]; t.next() {
					underWay = slices.Delete(underWay, i, i+1)
					return t.result
				}
			}
		},
		Now: func() time.Time { return o.world.Now() },
	}, o.options(spent))
	for i := range done.Outcomes {
		out.count(&done.Outcomes[i])
	}
	return done, out
}

func (o *Operator) options(spent func(share float64) bool) progress.Options {
	options := progress.Options{Refusals: o.memory, Spent: spent, Paces: o.paces}
	if o.workload != nil {
		options.Workload = memory.KeyOf(o.workload)
		options.Generation = o.workload.GetGeneration()
	}
	return options
}

// Refusals returns what the server has refused for the workload.
func (o *Operator) Refusals() action.Refusals {
	if o.workload == nil {
		return nil
	}
	return o.memory.For(memory.KeyOf(o.workload), refusals.Observation{Now: o.world.Now(), Generation: o.workload.GetGeneration()})
}

// anyOf chooses one of n actions under way: the first one in a calm world.
func (o *Operator) anyOf(n int) int {
	if o.world.Options.Calm {
		return 0
	}
	return o.rng.IntN(n)
}

// report writes the status that follows from what became of the steps, unless that is deferred. It reports
// whether everything was written.
func (o *Operator) report(done action.Failures, out *Outcome) (written bool, wake time.Duration) {
	r, ok := o.planner.(Reporter)
	if !ok || out.Crashed {
		return !out.Crashed, 0
	}
	wanted := 0
	p := action.Plan{Now: o.world.Now(), Refusals: o.Refusals()}
	for _, step := range r.Report(done) {
		wanted += len(step.Actions)
		p.Add(step)
	}
	p = action.Admit(p)
	wrote, status := o.Run(p.Steps, nil)
	out.add(status)
	return status.Done == wanted, shorter(p.RequeueAfter, wrote.RetryAfter)
}

// shorter returns the shorter of two times, of which 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
