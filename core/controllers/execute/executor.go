package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

const (
	// DefaultParallelism is how many writes one pass has under way at most.
	DefaultParallelism = 32
	// DefaultTimeout bounds one write where the client does not. That of package manager ends writes
	// before the next leader may look at the world.
	DefaultTimeout = 7 * time.Second
	// mostRefused is how many refusals in a row end a step: the rest would fare no better.
	mostRefused = 3
	// fewAtFirst is how many writes a step begins with: what is refused to one may be refused to all.
	fewAtFirst = 4
)

// Recorder is told of every write. The freshness gate is one.
type Recorder interface {
	Created(workload types.NamespacedName, o client.Object)
	Written(workload types.NamespacedName, o client.Object)
	Deleted(workload types.NamespacedName, o client.Object)
	Doubtful(workload types.NamespacedName, o client.Object)
}

// Options say with what an executor works.
type Options struct {
	// Client writes. Its user agent names the controller.
	Client client.Client
	// Live reads from the server: the owner before it adopts, and what stands where a create collides.
	Live client.Reader
	// Recorder is told of every write.
	Recorder Recorder
	// Metrics is where the counter flotilla_noop_writes_total is registered.
	Metrics prometheus.Registerer
	// Controller is the value of that counter's label "controller".
	Controller string
	// Refusals remembers what is refused; nil for a memory of the executor's own.
	Refusals *refusals.Memory
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
	// Parallelism bounds the writes under way; 0 means DefaultParallelism.
	Parallelism int
	// Timeout bounds one write; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Executor runs steps. It is safe for concurrent use by passes over different owners.
type Executor struct {
	options Options
	noops   prometheus.Counter
}

// New makes an executor. Several executors may share one registerer.
func New(o Options) (*Executor, error) {
	if o.Parallelism == 0 {
		o.Parallelism = DefaultParallelism
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Refusals == nil {
		o.Refusals = &refusals.Memory{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_noop_writes_total",
		Help: "Writes that changed nothing: the server returned the resourceVersion that was judged.",
	}, []string{"controller"})
	if err := o.Metrics.Register(counter); err != nil {
		var registered prometheus.AlreadyRegisteredError
		if !errors.As(err, &registered) {
			return nil, fmt.Errorf("register the counter of writes that change nothing: %w", err)
		}
		counter = registered.ExistingCollector.(*prometheus.CounterVec)
	}
	return &Executor{options: o, noops: counter.WithLabelValues(o.Controller)}, nil
}

// Run runs the steps in order for the owner, which is the workload as it was judged.
//
// A step runs to its end unless the server cannot be reached or fails, or several of its actions are refused in a
// row, or the step starts slowly and an action of it did not succeed for another reason than that its name is taken.
// A step with an error ends the plan; so does one in which the world had lost or gained an object, or in which
// anything but a pod was refused or had changed. A refused or changed pod is a matter of that pod, and a refused
// deletion of that object: the steps after it run. An action that is outdated when its turn comes is stale.
// What is not done is remembered, so that it is not tried again before a pause is over.
func (e *Executor) Run(ctx context.Context, owner client.Object, steps []action.Step) Outcome {
	var out Outcome
	p := &pass{Executor: e, owner: owner, workload: client.ObjectKeyFromObject(owner)}
	for i := range steps {
		results := p.step(ctx, &steps[i])
		for i := range results {
			pause := p.remember(&results[i])
			out.add(results[i], pause)
		}
		if len(results) < len(steps[i].Actions) {
			out.Ended = true
		}
		if ctx.Err() != nil || endsPlan(results) {
			out.Ended = out.Ended || i < len(steps)-1
			break
		}
	}
	if out.Ended && ctx.Err() != nil && out.Err == nil {
		out.Err = fmt.Errorf("run the plan: %w", ctx.Err())
	}
	return out
}

// remember has the pauses of refused actions grow, and returns that of this one.
func (p *pass) remember(r *Result) (pause time.Duration) {
	switch {
	case r.State == Done:
		p.options.Refusals.Done(p.workload, r.Action)
		return 0
	case errors.Is(r.Err, errOutdated): // nobody was asked
		return time.Second
	}
	text := r.Text()
	if errors.Is(r.Err, ErrMounted) { // as Outcome.Result: it may be so for ever
		text = ""
	}
	pause, r.told = p.options.Refusals.Failed(p.workload, p.owner.GetGeneration(), r.Action, refusals.Failure{
		Message: text, RetryAfter: r.retryAfter, Late: r.late, Unclear: r.State == Failed && isDoubtful(r.Err), Conflict: r.State == Stale,
		Alone: r.alone || apierrors.IsAlreadyExists(r.Err), // a name says nothing of other names
	}, p.options.Clock.Now())
	return pause
}

func endsPlan(results []Result) bool {
	for _, r := range results {
		_, isPod := r.Action.Object.(*corev1.Pod)
		switch {
		case r.State == Blocked && (r.Action.Verb == action.Delete || errors.Is(r.Err, ErrMounted)): // nothing builds on it
		case r.State == Failed, r.gone, r.State != Done && !isPod:
			return true
		}
	}
	return false
}

// step runs the actions of one step and returns the results of those that were tried, in order.
func (p *pass) step(ctx context.Context, s *action.Step) []Result {
	results := make([]Result, len(s.Actions))
	tried := inParallel(len(s.Actions), p.options.Parallelism, s.SlowStart, func(i int) verdict {
		if ctx.Err() != nil {
			return stop
		}
		results[i] = p.try(ctx, &s.Actions[i])
		switch {
		case results[i].State == Done:
			return succeeded
		case results[i].fatal || s.SlowStart && !results[i].alone:
			return stop
		case results[i].State == Blocked && !results[i].alone:
			return refused
		default:
			return failed
		}
	})
	kept := results[:0]
	for _, r := range results[:tried] {
		if r.Action != nil { // nil: the context had ended
			kept = append(kept, r)
		}
	}
	return kept
}

// verdict is what one call means for the calls after it.
type verdict int

const (
	succeeded verdict = iota
	failed            // this one only
	refused           // perhaps those after it, too
	stop              // start no further one
)

// inParallel calls do for 0, 1, ... n-1, at most limit at a time, and returns how many were called.
// It begins with a few, a slow start with one, and allows one more with each success: 1, 2, 4, 8 per
// round trip, without waiting for the slowest of a batch.
func inParallel(n, limit int, slowStart bool, do func(i int) verdict) int {
	allowed := min(fewAtFirst, limit)
	if slowStart {
		allowed = 1
	}
	verdicts := make(chan verdict, limit)
	started, running, inARow, stopped := 0, 0, 0, false
	for {
		for ; started < n && running < allowed && !stopped; started++ {
			running++
			go func(i int) { verdicts <- do(i) }(started)
		}
		if running == 0 {
			return started
		}
		switch <-verdicts {
		case succeeded:
			allowed, inARow = min(allowed+1, limit), 0
		case failed:
		case refused:
			inARow++
			stopped = stopped || inARow == mostRefused
		case stop:
			stopped = true
		}
		running--
	}
}
