package base

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/controllers/events"
	"github.com/flotilla-project/flotilla/core/controllers/execute"
	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/freshness"
	"github.com/flotilla-project/flotilla/core/controllers/status"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Settings are what the process says about any of its controllers.
type Settings struct {
	// Workers is how many objects are reconciled at a time; 0 leaves it to the controller.
	Workers int
	// Reader says how cached objects are handed out.
	Reader fastclient.Options
	// Fence holds up passes until the caches show what earlier processes wrote. All controllers of a process share it;
	// nil where there is no earlier process.
	Fence *freshness.Fence
	// Namespace restricts the controller to one namespace; empty means all.
	Namespace string
	// UserAgent is the name under which the controller writes.
	UserAgent string
}

// Options say what is the controller's own.
type Options struct {
	Settings
	// Controller names the controller in logs and metrics.
	Controller string
	// EventSource is the name under which users see its events.
	EventSource string
	// EventRecorder sends the events in place of a recorder of the controller's own, which EventSource would name. Nil
	// for none.
	EventRecorder clientevents.EventRecorder
	// Kinds are those that the controller writes, with what the cache holds of them.
	Kinds map[client.Object]cache.ByObject
}

// Controller is what every controller works with, whatever its kind.
type Controller struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the server.
	Live client.Reader
	// Reader reads from the cache without copies.
	Reader *fastclient.Reader
	// Freshness knows the writes that the cache has not shown yet.
	Freshness Freshness
	// Refusals knows the writes that the server has refused, and when to try them again.
	Refusals *refusals.Tracker
	// Executor writes what plans want.
	Executor *execute.Executor
	// Status writes statuses.
	Status status.Writer
	// Events tells users.
	Events *events.Recorder
	// Clock tells the time.
	Clock clock.PassiveClock

	memories []Memory
}

// Freshness holds up passes over objects of which the cache has yet to show what was written. A freshness.Gate is one.
type Freshness interface {
	Memory
	// Wait returns how long to leave the object alone. A new leader stays until all caches have shown what earlier ones
	// wrote, or until ctx ends.
	Wait(ctx context.Context, name types.NamespacedName) time.Duration
}

// Memory remembers something of objects between passes.
type Memory interface {
	// Forget drops what is remembered of an object that is gone.
	Forget(name types.NamespacedName)
}

// New makes the parts of a controller and adds to the manager what must run with it. It must be called
// before the manager's cache starts.
func New(ctx context.Context, mgr ctrl.Manager, o Options) (*Controller, error) {
	writer, err := fastclient.NewClient(mgr, o.UserAgent)
	if err != nil {
		return nil, err
	}
	gate, err := freshness.New(ctx, freshness.Options{
		Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Kinds: o.Kinds, Live: mgr.GetAPIReader(),
		Clock: clock.RealClock{}, Fence: o.Fence,
	})
	if err != nil {
		return nil, fmt.Errorf("make the freshness gate: %w", err)
	}
	if err := mgr.Add(gate); err != nil {
		return nil, fmt.Errorf("add the freshness gate: %w", err)
	}
	memory := &refusals.Tracker{}
	executor, err := execute.New(execute.Options{
		Client: writer, Live: mgr.GetAPIReader(), Recorder: gate, Refusals: memory, Metrics: metrics.Registry, Controller: o.Controller,
	})
	if err != nil {
		return nil, fmt.Errorf("make the executor: %w", err)
	}
	recorder := o.EventRecorder
	if recorder == nil {
		recorder, err = events.Broadcast(mgr, o.EventSource) //nolint:contextcheck // events leave until the manager ends, not until it is set up
		if err != nil {
			return nil, err
		}
	}
	return &Controller{
		Client:    writer,
		Live:      mgr.GetAPIReader(),
		Reader:    fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o.Settings.Reader),
		Freshness: gate,
		Refusals:  memory,
		Executor:  executor,
		Status:    status.Writer{Client: writer, Recorder: gate},
		Events:    events.NewRecorder(recorder, mgr.GetScheme()),
		Clock:     clock.RealClock{},
	}, nil
}

// Execute writes what a plan for the object wants.
func (c *Controller) Execute(ctx context.Context, object client.Object, p action.Plan) progress.Result {
	if !p.Empty() {
		log.FromContext(ctx).V(2).Info("pass", "plan", p.String())
	}
	return c.Executor.Run(ctx, object, p.Steps)
}

// PatchStatus patches the status of an object when it changed, and reports whether it did. A refused patch, or one that
// met another version of the object, is not repeated before a pause is over; again is when to look at the object at the
// latest.
func (c *Controller) PatchStatus(ctx context.Context, before, after client.Object) (wrote bool, again time.Duration, err error) {
	if equality.Semantic.DeepEqual(before, after) {
		return false, 0, nil
	}
	name, now := client.ObjectKeyFromObject(before), c.Clock.Now()
	plan := action.Report(before, c.Refusals.For(name, refusals.Observation{Now: now, Generation: before.GetGeneration()}), now)
	if plan.Empty() {
		return false, plan.RequeueAfter, nil
	}
	write := func(*action.Action) progress.Outcome {
		wrote, err = c.Status.Patch(ctx, before, after)
		return progress.OutcomeOf(err)
	}
	done := progress.Run(plan.Steps, progress.InTurn(write, c.Clock.Now), progress.Options{
		Workload: name, Generation: before.GetGeneration(), Refusals: c.Refusals,
	})
	if err == nil || done.Stale > 0 { // then the event of that change brings the next pass
		return wrote, done.RetryAfter, nil
	}
	return false, done.RetryAfter, fmt.Errorf("patch status: %w", err)
}

// Known returns what the server has refused to a workload with the pods before.
func (c *Controller) Known(workload client.Object, pods []*corev1.Pod, minReadySeconds int32, now time.Time) action.Refusals {
	return c.Refusals.For(client.ObjectKeyFromObject(workload), refusals.Observation{
		Now: now, Generation: workload.GetGeneration(),
		Available: func() int { return podstate.CountAvailable(pods, now, minReadySeconds) },
	})
}

// Remember has Forget reach more memories than the controller's own. It is called before the first pass.
func (c *Controller) Remember(more ...Memory) { c.memories = append(c.memories, more...) }

// Forget drops what is remembered of an object that is gone.
func (c *Controller) Forget(name types.NamespacedName) {
	c.Freshness.Forget(name)
	c.Refusals.Forget(name)
	for _, m := range c.memories {
		m.Forget(name)
	}
}
