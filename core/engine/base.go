package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/action"
	"github.com/flotilla-project/flotilla/core/events"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/freshness"
	"github.com/flotilla-project/flotilla/core/status"
)

// Settings are what the process says about any of its controllers.
type Settings struct {
	// Workers is how many objects are reconciled at a time; 0 leaves it to the controller.
	Workers int
	// Reader says how cached objects are handed out.
	Reader fastclient.Options
	// LeaderVersion returns the resourceVersion of the write that made this process leader; nil without
	// leader election.
	LeaderVersion func(context.Context) (string, error)
	// Namespace restricts the controller to one namespace; empty means all.
	Namespace string
	// UserAgent is the name under which the controller writes.
	UserAgent string
}

// BaseOptions say what is the controller's own.
type BaseOptions struct {
	Settings
	// Controller names the controller in logs and metrics.
	Controller string
	// EventSource is the name under which users see its events.
	EventSource string
	// Kinds are those that the controller writes, with what the cache holds of them.
	Kinds map[client.Object]cache.ByObject
}

// Base is what every controller works with, whatever its kind.
type Base struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the server.
	Live client.Reader
	// Reader reads from the cache without copies.
	Reader *fastclient.Reader
	// Freshness knows the writes that the cache has not shown yet.
	Freshness *freshness.Gate
	// Executor writes what plans want.
	Executor *execute.Executor
	// Status writes statuses.
	Status status.Writer
	// Events tells users.
	Events *events.Recorder
	// Clock tells the time.
	Clock clock.PassiveClock
}

// NewBase makes the parts of a controller and adds to the manager what must run with it. It must be called
// before the manager's cache starts.
func NewBase(ctx context.Context, mgr ctrl.Manager, o BaseOptions) (*Base, error) {
	writer, err := fastclient.NewClient(mgr, o.UserAgent)
	if err != nil {
		return nil, err
	}
	gate, err := freshness.New(ctx, freshness.Options{
		Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Kinds: o.Kinds, Live: mgr.GetAPIReader(),
		Clock: clock.RealClock{}, LeaderVersion: o.LeaderVersion,
	})
	if err != nil {
		return nil, fmt.Errorf("make the freshness gate: %w", err)
	}
	if err := mgr.Add(gate); err != nil {
		return nil, fmt.Errorf("add the freshness gate: %w", err)
	}
	executor, err := execute.New(execute.Options{
		Client: writer, Live: mgr.GetAPIReader(), Recorder: gate, Metrics: metrics.Registry, Controller: o.Controller,
	})
	if err != nil {
		return nil, fmt.Errorf("make the executor: %w", err)
	}
	return &Base{
		Client:    writer,
		Live:      mgr.GetAPIReader(),
		Reader:    fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o.Settings.Reader),
		Freshness: gate,
		Executor:  executor,
		Status:    status.Writer{Client: writer, Recorder: gate},
		Events:    events.NewRecorder(mgr.GetEventRecorder(o.EventSource)),
		Clock:     clock.RealClock{},
	}, nil
}

// Execute writes what a plan for the object wants.
func (b *Base) Execute(ctx context.Context, object client.Object, p action.Plan) execute.Outcome {
	if !p.Empty() {
		log.FromContext(ctx).V(2).Info("pass", "plan", p.String())
	}
	return b.Executor.Run(ctx, object, p.Steps)
}

// PatchStatus patches the status of an object when it changed, and says whether it did. A refused patch met
// another version of the object; again is when to look at it at the latest, should no event tell of that
// version.
func (b *Base) PatchStatus(ctx context.Context, before, after client.Object) (wrote bool, again time.Duration, err error) {
	wrote, err = b.Status.Patch(ctx, before, after)
	if err != nil {
		return false, 0, fmt.Errorf("patch status: %w", err)
	}
	if !wrote && !equality.Semantic.DeepEqual(before, after) {
		again = execute.StaleRetry
	}
	return wrote, again, nil
}

// Wait is how long to leave an object alone, because the cache has yet to show what was written for it. A new
// leader stays until all caches have shown what earlier ones wrote, or until ctx ends.
func (b *Base) Wait(ctx context.Context, name types.NamespacedName) time.Duration {
	return b.Freshness.Wait(ctx, name)
}

// Forget drops what is remembered of an object that is gone.
func (b *Base) Forget(name types.NamespacedName) { b.Freshness.Forget(name) }
