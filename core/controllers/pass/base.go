package pass

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/flotilla-project/flotilla/core/controllers/status"
	"github.com/flotilla-project/flotilla/core/internal/controllers/freshness"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/plan/memory"
	"github.com/flotilla-project/flotilla/core/plan/progress"
	"github.com/flotilla-project/flotilla/core/plan/refusals"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
)

// Settings are the settings that the process gives to each of its controllers.
type Settings struct {
	// Workers is how many objects are reconciled at a time; 0 leaves it to the controller.
	Workers int
	// Reader selects how cached objects are handed out.
	Reader fastclient.Options
	// Fence delays passes until the caches show the writes of earlier leaders. All controllers of a process share it; nil
	// where no other process can have written.
	Fence *freshness.Fence
	// Namespace restricts the controller to one namespace; empty means all.
	Namespace string
	// UserAgent is the name under which the controller writes.
	UserAgent string
	// Retries is how soon passes that have failed are repeated.
	Retries Retries
}

// Options describe one controller.
type Options struct {
	Settings
	// Controller names the controller in logs and metrics.
	Controller string
	// EventSource is the name under which users see its events.
	EventSource string
	// EventRecorder sends the events in place of a recorder of the controller's own, which EventSource would name. Nil
	// for none.
	EventRecorder clientevents.EventRecorder
	// Kinds are the kinds that the controller writes, and others that must be as fresh as the leader's lease, each with its
	// settings in the cache. Those without a field selector are restricted to the Namespace, as the cache does by default.
	Kinds map[client.Object]cache.ByObject
}

// Controller has the parts that a controller of any kind works with.
type Controller struct {
	// Client writes to the server and reads from the cache.
	Client client.Client
	// Live reads from the server.
	Live client.Reader
	// Reader reads from the cache without copies.
	Reader *fastclient.Reader
	// Freshness tracks the writes that the cache does not show yet.
	Freshness Freshness
	// Refusals remembers the writes that the server refused, and when to try them again.
	Refusals *refusals.Tracker
	// Executor carries out plans.
	Executor *execute.Executor
	// Status writes statuses.
	Status status.Writer
	// Events sends events to users.
	Events *events.Recorder
	// Clock returns the time.
	Clock clock.PassiveClock

	memories []Memory
	rests    rests
}

// Freshness delays passes over objects while the cache does not show their last writes yet. A freshness.Tracker
// implements it.
type Freshness interface {
	Memory
	// Wait returns for how long not to reconcile the object. In a new leader it blocks until all caches show the writes
	// of earlier leaders, or until ctx ends.
	Wait(ctx context.Context, name types.NamespacedName) time.Duration
}

// Memory keeps data about objects between passes.
type Memory interface {
	// Forget drops the memory of an object that is gone.
	Forget(name types.NamespacedName)
}

// within gives the settings the selector that the cache has by default: a manager that is restricted to a namespace may
// have no right to ask for more.
func within(namespace string, kinds map[client.Object]cache.ByObject) map[client.Object]cache.ByObject {
	restricted := make(map[client.Object]cache.ByObject, len(kinds))
	for kind, settings := range kinds {
		if settings.Field == nil {
			settings = fastclient.Within(namespace, settings)
		}
		restricted[kind] = settings
	}
	return restricted
}

// New creates the parts of a controller and adds to the manager the parts that must run with it. Call it before the
// manager's cache starts.
func New(ctx context.Context, mgr ctrl.Manager, o Options) (*Controller, error) {
	writer, err := fastclient.NewClient(mgr, o.UserAgent)
	if err != nil {
		return nil, err
	}
	tracker, err := freshness.New(ctx, freshness.Options{
		Cache:  mgr.GetCache(),
		Scheme: mgr.GetScheme(),
		Kinds:  within(o.Namespace, o.Kinds),
		Live:   mgr.GetAPIReader(),
		Clock:  clock.RealClock{},
		Fence:  o.Fence,
	})
	if err != nil {
		return nil, fmt.Errorf("make the freshness tracker: %w", err)
	}
	if err := mgr.Add(tracker); err != nil {
		return nil, fmt.Errorf("add the freshness tracker: %w", err)
	}
	reading := o.Settings.Reader
	reading.Over = tracker.Over
	reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), reading)
	refused := &refusals.Tracker{}
	executor, err := execute.New(execute.Options{
		Client:     writer,
		Live:       mgr.GetAPIReader(),
		Recorder:   tracker,
		Refusals:   refused,
		Metrics:    metrics.Registry,
		Controller: o.Controller,
		Edited:     reader.Edited,
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
		Reader:    reader,
		Freshness: tracker,
		Refusals:  refused,
		Executor:  executor,
		Status:    status.Writer{Client: writer, Recorder: tracker},
		Events:    events.NewRecorder(recorder, mgr.GetScheme(), clock.RealClock{}),
		Clock:     clock.RealClock{},
	}, nil
}

// Execute carries out a plan for the object.
func (c *Controller) Execute(ctx context.Context, object client.Object, p action.Plan) progress.Result {
	if !p.Empty() {
		log.FromContext(ctx).V(2).Info("pass", "plan", p.String())
	}
	return c.Executor.Run(ctx, object, p.Steps)
}

// KnownRefusals returns the writes for a workload that the server has refused, given the workload's pods.
func (c *Controller) KnownRefusals(workload client.Object, pods []*corev1.Pod, minReadySeconds int32, now time.Time) action.Refusals {
	return c.Refusals.For(memory.KeyOf(workload), refusals.Observation{
		Now:        now,
		Generation: workload.GetGeneration(),
		Available:  func() int { return podstate.CountAvailable(pods, now, minReadySeconds) },
	})
}

// AddMemories adds memories that Forget clears, too. Call it before the first pass.
func (c *Controller) AddMemories(more ...Memory) { c.memories = append(c.memories, more...) }

// Forget drops the memory of an object that is gone.
func (c *Controller) Forget(name types.NamespacedName) {
	c.Freshness.Forget(name)
	c.Refusals.Forget(name)
	c.Executor.Forget(name)
	c.rests.Forget(name)
	for _, m := range c.memories {
		m.Forget(name)
	}
}
