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
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
)

// DefaultTimeout bounds one write if the client does not. The client of package manager ends writes before the next
// leader may start.
const DefaultTimeout = 7 * time.Second

// Recorder records every write. A freshness.Tracker implements it.
type Recorder interface {
	Created(workload types.NamespacedName, o client.Object)
	Written(workload types.NamespacedName, o client.Object)
	Deleted(workload types.NamespacedName, o client.Object)
	MaybeCreated(workload types.NamespacedName, o client.Object)
}

// Options are the settings of an executor.
type Options struct {
	// Client writes. Its user agent names the controller.
	Client client.Client
	// Live reads from the server: the owner before it adopts an object, and the existing object when a name is taken.
	Live client.Reader
	// Recorder records every write.
	Recorder Recorder
	// Metrics is where the counter flotilla_noop_writes_total is registered.
	Metrics prometheus.Registerer
	// Controller is the value of that counter's label "controller".
	Controller string
	// Refusals remembers refused writes; nil for a memory of the executor's own.
	Refusals *refusals.Tracker
	// Clock is the time; nil means the real one.
	Clock clock.PassiveClock
	// Parallelism bounds the writes under way; 0 means progress.DefaultParallelism.
	Parallelism int
	// Timeout bounds one write; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Executor carries out plans. It is safe for concurrent use by passes over different owners.
type Executor struct {
	options Options
	noops   prometheus.Counter
}

// New makes an executor. Several executors may share one registerer.
func New(o Options) (*Executor, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Refusals == nil {
		o.Refusals = &refusals.Tracker{}
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

// Run carries out the steps for the owner, which is the workload in the version that the plan was made from, as package
// progress defines. When the context ends, no further action is begun.
func (e *Executor) Run(ctx context.Context, owner client.Object, steps []action.Step) progress.Result {
	p := &pass{Executor: e, owner: owner, workload: client.ObjectKeyFromObject(owner)}
	ended := make(chan *progress.Outcome)
	out := progress.Run(steps, progress.Writer{
		Start: func(r *progress.Outcome) bool {
			if ctx.Err() != nil {
				return false
			}
			go func() {
				*r = p.try(ctx, r.Action)
				ended <- r
			}()
			return true
		},
		Wait: func() *progress.Outcome { return <-ended },
		Now:  e.options.Clock.Now,
	}, progress.Options{
		Workload: p.workload, Generation: owner.GetGeneration(), Refusals: e.options.Refusals, Parallelism: e.options.Parallelism,
	})
	if out.Incomplete && ctx.Err() != nil && out.Err == nil {
		out.Err = fmt.Errorf("run the plan: %w", ctx.Err())
	}
	return out
}
