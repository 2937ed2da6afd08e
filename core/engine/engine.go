package engine

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/events"
	"github.com/flotilla-project/flotilla/core/execute"
	"github.com/flotilla-project/flotilla/core/fastclient"
	"github.com/flotilla-project/flotilla/core/freshness"
	"github.com/flotilla-project/flotilla/core/history"
	"github.com/flotilla-project/flotilla/core/orphans"
	"github.com/flotilla-project/flotilla/core/podtemplate"
	"github.com/flotilla-project/flotilla/core/pulljobs"
	"github.com/flotilla-project/flotilla/core/status"
)

// discoveryTimeout bounds a look at what the cluster serves. An answer that takes long is as good as none.
const discoveryTimeout = 5 * time.Second

// Options say what is the workload's own.
type Options struct {
	// Controller names the controller in logs and metrics.
	Controller string
	// UserAgent is the name under which it writes.
	UserAgent string
	// EventSource is the name under which users see its events.
	EventSource string
	// Kind is an object of the workload's kind.
	Kind client.Object
	// Cache is what the manager's cache was made with. Its pods, claims and revisions are indexed by owner
	// and taken for kinds that the controller writes.
	Cache cache.Options
	// PodLabel is the label by whose presence Cache selects pods.
	PodLabel string
	// Reader says how cached objects are handed out.
	Reader fastclient.Options
	// LeaderVersion returns the resourceVersion of the write that made this process leader; nil without
	// leader election.
	LeaderVersion func(context.Context) (string, error)
	// Namespace restricts the controller to one namespace; empty means all.
	Namespace string
}

// Engine is what a controller works with. It holds no state that the cluster does not hold; what its
// parts remember only saves work.
type Engine struct {
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
	// Templates asks the server for its defaults.
	Templates *podtemplate.Checker
	// History finds the revision of a template.
	History *history.History
	// Orphans finds pods that the cache does not show.
	Orphans *orphans.Finder
	// PullJobs has images pulled ahead of updates.
	PullJobs *pulljobs.Jobs
	// Clock tells the time.
	Clock clock.PassiveClock
}

// New makes the parts of a controller and adds to the manager what must run with it. It must be called
// before the manager's cache starts.
func New(ctx context.Context, mgr ctrl.Manager, o Options) (*Engine, error) {
	kinds := written(o.Cache)
	for kind := range kinds {
		if err := fastclient.IndexOwners(ctx, mgr.GetFieldIndexer(), kind); err != nil {
			return nil, err
		}
	}
	kinds[o.Kind] = fastclient.Within(o.Namespace, cache.ByObject{})
	writer, err := fastclient.NewClient(mgr, o.UserAgent)
	if err != nil {
		return nil, err
	}
	gate, err := freshness.New(ctx, freshness.Options{
		Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Kinds: kinds, Live: mgr.GetAPIReader(),
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
	served, err := newDiscovery(mgr.GetConfig(), discoveryTimeout)
	if err != nil {
		return nil, err
	}
	reader := fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o.Reader)
	templates := podtemplate.New(writer, clock.RealClock{})
	recorder := events.NewRecorder(mgr.GetEventRecorder(o.EventSource))
	return &Engine{
		Client:    writer,
		Live:      mgr.GetAPIReader(),
		Reader:    reader,
		Freshness: gate,
		Executor:  executor,
		Status:    status.Writer{Client: writer, Recorder: gate},
		Events:    recorder,
		Templates: templates,
		History:   history.New(reader, templates),
		Orphans:   orphans.New(mgr.GetAPIReader(), o.PodLabel),
		PullJobs: pulljobs.New(pulljobs.Options{
			Discovery: served, Cache: mgr.GetCache(), Executor: executor, Events: recorder, Clock: clock.RealClock{},
		}),
		Clock: clock.RealClock{},
	}, nil
}

// written are the kinds besides its own that a workload's controller writes, as far as they are cached.
func written(o cache.Options) map[client.Object]cache.ByObject {
	kinds := map[client.Object]cache.ByObject{}
	for kind, settings := range o.ByObject {
		switch kind.(type) {
		case *corev1.Pod, *corev1.PersistentVolumeClaim, *appsv1.ControllerRevision:
			kinds[kind] = settings
		}
	}
	return kinds
}

// Forget drops what is remembered of a workload that is gone.
func (e *Engine) Forget(name types.NamespacedName) {
	e.Freshness.Forget(name)
	e.History.Forget(name)
	e.Orphans.Forget(name)
	e.PullJobs.Forget(name)
}

func newDiscovery(config *rest.Config, timeout time.Duration) (*discovery.DiscoveryClient, error) {
	config = rest.CopyConfig(config)
	config.Timeout = timeout
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	return d, nil
}
