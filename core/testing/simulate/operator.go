package simulate

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// Planner thinks one pass: what to write, and when to think again at the latest (0: at the next
// event). What it reads from the view is read-only. A planner that keeps something in memory between
// passes is a Restarter too.
type Planner interface {
	Plan(view *View, now time.Time, seed uint64) (steps []action.Step, wake time.Duration)
}

// Restarter is a Planner with a memory.
type Restarter interface {
	// Restart empties the memory, as a new process would.
	Restart()
}

// Reporter is a Planner whose steps write no status: it is asked for that once they have run, or ended early.
type Reporter interface {
	// Report are the steps that write what has become of the last plan.
	Report(done action.Result) []action.Step
}

// Follower is a Planner that is told what became of its actions.
type Follower interface {
	Followed(a *action.Action, err error)
}

// Noticer is a Planner whose plans tell users more than what became of their actions.
type Noticer interface {
	// Notices are what the last plan tells, by whether its status was written where there was one to write.
	Notices(statusWritten bool) []action.Notice
}

// PlannerFunc is a Planner without a memory.
type PlannerFunc func(view *View, now time.Time, seed uint64) ([]action.Step, time.Duration)

// Plan calls f.
func (f PlannerFunc) Plan(view *View, now time.Time, seed uint64) ([]action.Step, time.Duration) {
	return f(view, now, seed)
}

// ErrCrash is the end of an operator in the middle of its plan.
var ErrCrash = errors.New("the operator crashed")

var (
	errFault    = errors.New("injected fault")
	errOutdated = errors.New("what was judged is no longer so")
	errMounted  = errors.New("the claim is in use")
)

// Outcome counts what became of the actions of a plan, in the words of package execute.
type Outcome struct {
	// Done actions were written to their end.
	Done int
	// Stale actions met an object that was not as judged; the next pass decides again.
	Stale int
	// Blocked actions were refused by admission or validation.
	Blocked int
	// Failed actions met another error.
	Failed int
	// Crashed says that the operator died on the way.
	Crashed bool
}

// Idle says that there was nothing to do.
func (o Outcome) Idle() bool { return o == Outcome{} }

// count adds the outcome of one action.
func (o *Outcome) count(err error) {
	switch {
	case err == nil:
		o.Done++
	case errors.Is(err, ErrCrash):
		o.Crashed = true
	case isStale(err):
		o.Stale++
	case isRefusal(err):
		o.Blocked++
	default:
		o.Failed++
	}
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

	wasRefused bool             // the present action met one of Faults.Refused
	memory     *refusals.Memory // what the server refused
	generation int64            // of the workload, as the last view showed it
	result     action.Result    // of the present pass
	retry      time.Duration    // the shortest pause of what failed in the present pass, 0 for none
	quiet      *quiet
}

// NewOperator makes the operator of the world that runs the planner under the faults.
func NewOperator(w *World, p Planner, f Faults) *Operator {
	w.operators++
	return &Operator{
		world: w, planner: p, faults: f,
		rng:     rand.New(rand.NewPCG(f.Seed, w.options.Seed<<8+w.operators)), //nolint:gosec // a simulation needs no secrecy
		written: map[string]int{}, shown: map[string]int{},
		memory: &refusals.Memory{}, quiet: watchQuiet(w, f.Refused),
	}
}

// Writes is the number of writes that were done so far.
func (o *Operator) Writes() int { return o.writes }

// Restart is a new process: nothing is remembered. Unless the gate is off it waits until its caches
// have seen all that was written before, as the leader fence demands.
func (o *Operator) Restart() {
	o.crashed = false
	o.written, o.shown = map[string]int{}, map[string]int{}
	o.memory = &refusals.Memory{}
	for kind, t := range o.world.tables {
		o.written[kind] = len(t.events)
	}
	if r, ok := o.planner.(Restarter); ok {
		r.Restart()
	}
}

// Pass thinks once and writes what the plan says. It returns what became of that and the time after
// which the planner wants to think again.
func (o *Operator) Pass() (Outcome, time.Duration) {
	o.passes++
	o.world.passes++
	o.meddle()
	o.result, o.retry = action.Result{}, 0
	steps, wake := o.planner.Plan(o.look(), o.world.now, o.rng.Uint64())
	o.quiet.judge(o)
	out := o.Run(steps)
	written, again := o.report(&out)
	o.notice(written)
	return out, shorter(wake, shorter(again, o.retry))
}

// think is what the planner wants, with the status that follows when all of it is done.
func think(p Planner, v *View, now time.Time, seed uint64) []action.Step {
	steps, _ := p.Plan(v, now, seed)
	if r, ok := p.(Reporter); ok {
		steps = append(steps, r.Report(action.Result{})...)
	}
	return steps
}

// Run writes steps in the way of package execute: in order; a failure, a lost or additional object,
// and anything but a pod that is refused or stale, other than a refused deletion, end the plan after the
// step. A crash ends it at once.
func (o *Operator) Run(steps []action.Step) Outcome {
	var out Outcome
	for i := range steps {
		if ends := o.runStep(&steps[i], &out); ends {
			break
		}
	}
	return out
}

// mostRefused is how many refusals in a row end a step.
const mostRefused = 3

// runStep tries all actions, those of a slow start in batches of 1, 2, 4, ... as long as all succeed.
func (o *Operator) runStep(step *action.Step, out *Outcome) (endsPlan bool) {
	batch := len(step.Actions)
	if step.SlowStart {
		batch = 1
	}
	stop, inARow := false, 0
	for rest := step.Actions; len(rest) > 0 && !stop; {
		batch = min(batch, len(rest))
		for _, i := range o.order(batch) {
			err := o.try(&rest[i], out)
			if out.Crashed {
				return true
			}
			inARow++
			if !isRefusal(err) {
				inARow = 0
			}
			stop = stop || err != nil && step.SlowStart && !o.nameTaken(&rest[i], err)
			endsPlan = endsPlan || ends(&rest[i], err)
			if inARow == mostRefused {
				return endsPlan
			}
		}
		stop = stop || out.Failed > 0
		rest = rest[batch:]
		batch *= 2
	}
	return endsPlan
}

// try writes one action and tells everybody who follows what became of it.
func (o *Operator) try(a *action.Action, out *Outcome) error {
	late, err := o.do(a)
	o.remember(a, err, late)
	o.tell(a, err)
	o.world.tellAction(a, err)
	if f, ok := o.planner.(Follower); ok && !errors.Is(err, ErrCrash) {
		f.Followed(a, err)
	}
	if !errors.Is(err, errMounted) { // which the server was asked for, and no more
		out.count(err)
	}
	return err
}

// ends says whether the plan ends after the step because of what became of the action.
func ends(a *action.Action, err error) bool {
	_, isPod := a.Object.(*corev1.Pod)
	harmless := isRefusal(err) && a.Verb == action.Delete || errors.Is(err, errMounted) ||
		isPod && (apierrors.IsConflict(err) || errors.Is(err, errOutdated) || isRefusal(err))
	return err != nil && !harmless
}

// nameTaken says that somebody else's object has the name of one to be created, which says nothing of
// other names.
func (o *Operator) nameTaken(a *action.Action, err error) bool {
	other := o.world.Latest(a.Object)
	return apierrors.IsAlreadyExists(err) && other != nil && controllerOf(other) != controllerOf(a.Object)
}

// order is the order of actions that run at the same time.
func (o *Operator) order(n int) []int {
	if !o.world.options.Calm {
		return o.rng.Perm(n)
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// isStale says that the world was not as judged.
func isStale(err error) bool {
	return errors.Is(err, errOutdated) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// cannot is the word of a server that refuses what no role allows.
const cannot = " cannot "

// isRefusal says that admission or validation refuse the write. What no role allows is a failure instead.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) && !strings.Contains(err.Error(), cannot) || apierrors.IsTooManyRequests(err) || isMalformed(err)
}

// isMalformed says that the write can never succeed.
func isMalformed(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnsupportedMediaType(err)
}
