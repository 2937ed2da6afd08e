package simulate

import (
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/simulation/cluster"
	"github.com/flotilla-project/flotilla/core/simulation/operator"
	"github.com/flotilla-project/flotilla/core/testing/retries"
)

// slowest is how long a request takes at most, as in package execute (DefaultTimeout).
const slowest = 7 * time.Second

var errFault = errors.New("injected fault")

// Operator runs the passes of a planner in a world under faults, and judges them.
type Operator struct {
	*operator.Operator

	world   *World
	planner operator.Planner
	faults  Faults
	rng     *rand.Rand
	passes  int
	written map[string]int // events of a kind that a view must contain: the operator's own writes
	shown   map[string]int // events of a kind that a view contained
	answers answers
	time    timeOfPasses
	spent   bool // the last pass had no time for all of its plan
	retries *retries.Judge
}

// NewOperator makes the operator of the world that runs the planner under the faults.
func NewOperator(w *World, p operator.Planner, f Faults) *Operator {
	w.operators++
	o := &Operator{
		world:   w,
		planner: p,
		faults:  f,
		rng:     rand.New(rand.NewPCG(f.Seed, w.Options.Seed<<8+w.operators)), //nolint:gosec // a simulation needs no secrecy
		written: map[string]int{},
		shown:   map[string]int{},
		time:    newTimeOfPasses(w, f),
		retries: retries.Watch(w.Cluster(), f.Refused),
	}
	o.Operator = operator.New(w.Cluster(), p, operator.Settings{
		Rand:     o.rng,
		Look:     o.look,
		Spent:    o.time.spent,
		Planned:  func() { o.retries.CheckRecovery(o.Refusals) },
		Executed: func(done *progress.Result) { o.spent = done.Spent },
		Send:     o.send,
		Ended:    o.retries.Ended,
		Noticed:  o.retries.Notice,
	})
	return o
}

// Restart starts a new process: nothing is remembered. Unless NoFreshness is set, it waits until its caches have seen
// all that was written before, as the leader fence requires.
func (o *Operator) Restart() {
	o.written = map[string]int{}
	o.shown = map[string]int{}
	o.answers = nil
	for _, kind := range o.world.Kinds() {
		o.written[kind] = len(o.world.Events(kind))
	}
	o.Operator.Restart()
}

// Pass runs one pass: it plans and writes. It returns the outcome and the time after which the planner wants to plan
// again.
func (o *Operator) Pass() (operator.Outcome, time.Duration) {
	o.passes++
	o.world.passes++
	o.actForeign()
	out, wake := o.Operator.Pass()
	if o.spent { // it goes on at once
		o.passes--
	}
	return out, wake
}

// Run carries out steps as package execute does, and gives the planner the outcomes.
func (o *Operator) Run(steps []action.Step) operator.Outcome {
	done, out := o.Operator.Run(steps, nil)
	o.Follow(&done)
	return out
}

// send sends one write, with all that can happen to it on the way.
func (o *Operator) send(r operator.Request) (action.Object, error) {
	at := r.Begun
	if at.IsZero() {
		at = o.world.Now()
	}
	o.world.Sends(at)
	defer o.world.Sends(time.Time{})
	if o.roll(o.faults.Interleave) {
		o.world.StepWithin(slowest)
	}
	if err := o.refusal(r.Object); err != nil {
		return nil, err
	}
	kind := cluster.KindOf(r.Object)
	if err := o.retries.Refuses(r); err != nil {
		if apierrors.IsTimeout(err) && !r.DryRun && o.rng.IntN(2) == 0 { // nobody knows what became of it
			_, _ = r.Write()
			o.written[kind] = len(o.world.Events(kind))
		}
		return nil, err
	}
	if r.DryRun {
		return o.Deliver(r)
	}
	return o.deliver(r)
}

// deliver has the server take a write, and perhaps the operator miss its answer.
func (o *Operator) deliver(r operator.Request) (action.Object, error) {
	kind := cluster.KindOf(r.Object)
	events := len(o.world.Events(kind))
	n, err := o.Deliver(r)
	if err != nil {
		return nil, err
	}
	lost := o.roll(o.faults.Timeout)
	switch {
	case !lost:
		o.answered(r, n, events)
	case !o.faults.ForgetsLostAnswers:
		// After a timeout the operator cannot know what became of the write, and must not go on
		// before it does.
		o.written[kind] = len(o.world.Events(kind))
	}
	switch {
	case o.Writes() == o.faults.CrashAfter:
		return nil, operator.ErrCrash
	case lost:
		return nil, apierrors.NewTimeoutError("the answer was lost", 0)
	}
	return n, nil
}
