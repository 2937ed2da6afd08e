package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// DefaultTimeout bounds one write if the client does not. The client of package manager ends writes before the next
// leader may start.
const DefaultTimeout = 7 * time.Second

// DefaultPass is how long the executor begins writes for one plan; with the last answers and the status a pass takes
// about half a second on a busy server. The rest is left to the next pass, so that new pods are put into service and the
// status is written in between.
const DefaultPass = 300 * time.Millisecond

// Recorder records every write. A freshness.Tracker implements it.
type Recorder interface {
	Created(workload types.NamespacedName, o client.Object)
	Written(workload types.NamespacedName, o client.Object)
	Deleted(workload types.NamespacedName, o client.Object)
	MaybeCreated(workload types.NamespacedName, o client.Object)
	MaybeWritten(workload types.NamespacedName, o client.Object)
}

// Options are the settings of an executor.
type Options struct {
	// Client writes. Its user agent names the controller.
	Client client.Client
	// Live reads from the server: the owner before it adopts an object, and the existing object when a name is taken.
	Live client.Reader
	// Recorder records every write.
	Recorder Recorder
	// Metrics is where the counters flotilla_actions_total and flotilla_noop_writes_total are registered.
	Metrics prometheus.Registerer
	// Controller is the value of their label "controller".
	Controller string
	// Refusals remembers refused writes; nil for a memory of the executor's own.
	Refusals *refusals.Tracker
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
	// Parallelism bounds the writes under way; 0 means progress.DefaultParallelism.
	Parallelism int
	// Timeout bounds one write; 0 means DefaultTimeout.
	Timeout time.Duration
	// Pass is about how long a plan is carried out in one go; 0 means DefaultPass.
	Pass time.Duration
	// Edited reports whether the owner has been edited since the plan was made, or is gone. Actions that have not begun
	// by then are left to the next pass. Nil means never.
	Edited func(owner client.Object) bool
	// Stopwatch measures the pass; nil means the real clock.
	Stopwatch clock.PassiveClock
}

// Executor carries out plans. It is safe for concurrent use by passes over different owners.
type Executor struct {
	options Options
	noops   prometheus.Counter
	actions *prometheus.CounterVec
	paces   *progress.Paces
	mounts  lists
}

// New makes an executor. Several executors may share one registerer.
func New(o Options) (*Executor, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Pass == 0 {
		o.Pass = DefaultPass
	}
	if o.Refusals == nil {
		o.Refusals = &refusals.Tracker{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Edited == nil {
		o.Edited = func(client.Object) bool { return false }
	}
	if o.Stopwatch == nil {
		o.Stopwatch = clock.RealClock{}
	}
	noops, err := counter(o, prometheus.CounterOpts{
		Name: "flotilla_noop_writes_total",
		Help: "Writes without effect: the server returned the resourceVersion that the write was based on. The number should stay constant.",
	}, "controller")
	if err != nil {
		return nil, err
	}
	actions, err := counter(o, prometheus.CounterOpts{
		Name: "flotilla_actions_total",
		Help: "Actions of plans, by action and result. Most actions are one write.",
	}, "controller", "action", "result")
	if err != nil {
		return nil, err
	}
	return &Executor{
		options: o,
		noops:   noops.WithLabelValues(),
		actions: actions,
		paces:   &progress.Paces{},
	}, nil
}

// counter registers a counter, or finds the counter of another executor, and sets "controller", which is among the
// labels.
func counter(o Options, describe prometheus.CounterOpts, labels ...string) (*prometheus.CounterVec, error) {
	vec := prometheus.NewCounterVec(describe, labels)
	if err := o.Metrics.Register(vec); err != nil {
		var registered prometheus.AlreadyRegisteredError
		if !errors.As(err, &registered) {
			return nil, fmt.Errorf("register counter %s: %w", describe.Name, err)
		}
		vec = registered.ExistingCollector.(*prometheus.CounterVec)
	}
	return vec.MustCurryWith(prometheus.Labels{"controller": o.Controller}), nil
}

// Run carries out the steps for the owner, which is the workload in the version that the plan was made from, as package
// progress defines. Run begins no further action after the context ends, or when its answer is expected after the time of
// the pass, judged by the last answer.
func (e *Executor) Run(ctx context.Context, owner client.Object, steps []action.Step) progress.Result {
	ended := make(chan answer)
	watch := e.options.Stopwatch
	began, took := watch.Now(), time.Duration(0)
	key := memory.KeyOf(owner)
	p := &pass{
		Executor: e,
		owner:    owner,
		workload: key.NamespacedName,
		mounts:   e.mounts.take(key, began),
	}
	out := progress.Run(steps, progress.Writer{
		Start: func(r *progress.Outcome) bool {
			if ctx.Err() != nil {
				return false
			}
			go func() {
				asked, listed := watch.Now(), p.listed()
				*r = p.try(ctx, r.Action)
				ended <- answer{r, watch.Since(asked) - (p.listed() - listed)}
			}()
			return true
		},
		Wait: func() *progress.Outcome {
			last := <-ended
			took = last.took
			return last.outcome
		},
		Now: e.options.Clock.Now,
	}, progress.Options{
		Workload:    key,
		Generation:  owner.GetGeneration(),
		Refusals:    e.options.Refusals,
		Parallelism: e.options.Parallelism,
		Paces:       e.paces,
		Spent: func(share float64) bool {
			return watch.Since(began)-p.listed()+took > time.Duration(share*float64(e.options.Pass)) || e.options.Edited(owner)
		},
	})
	for i := range out.Outcomes {
		r := &out.Outcomes[i]
		e.actions.WithLabelValues(string(r.Action.Verb), string(r.State)).Inc()
	}
	if out.Spent {
		e.mounts.leave(key, p.mounts)
	} else if len(out.Outcomes) > 0 {
		e.mounts.Forget(p.workload)
	}
	if out.Incomplete && ctx.Err() != nil && out.Err == nil {
		out.Err = fmt.Errorf("run the plan: %w", ctx.Err())
	}
	return out
}

// Edited reports whether the owner has been edited since it was read, or is gone.
func (e *Executor) Edited(owner client.Object) bool { return e.options.Edited(owner) }

// listed is how long the list of the pods that mount claims took. It does not count as time of the pass, which would end
// with little but that list.
func (p *pass) listed() time.Duration { return time.Duration(p.listing.Load()) }

// answer is the outcome of an action, and how long that took.
type answer struct {
	outcome *progress.Outcome
	took    time.Duration
}

// Forget drops the memory of a workload that is gone.
func (e *Executor) Forget(workload types.NamespacedName) {
	e.paces.Forget(workload)
	e.mounts.Forget(workload)
}
