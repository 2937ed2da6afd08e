package setup

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/flotilla-project/flotilla/core/podtemplate"
	"github.com/flotilla-project/flotilla/core/status"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset"
	"github.com/flotilla-project/flotilla/cloneset/internal/cloneset/plan"
)

// Options change how the controller works.
type Options struct {
	// Gates are the feature gates of plans.
	Gates plan.Gates
	// Workers is how many sets are reconciled at a time; 0 means DefaultWorkers.
	Workers int
	// Reader says how cached objects are handed out.
	Reader fastclient.Options
	// LeaderVersion returns the resourceVersion of the write that made this process leader; nil
	// without leader election.
	LeaderVersion func(context.Context) (string, error)
	// Namespace restricts the controller to one namespace; empty means all.
	Namespace string
	// UserAgent is the name under which the controller writes.
	UserAgent string
}

// DefaultWorkers is how many sets are reconciled at a time unless Options say otherwise.
const DefaultWorkers = 3

// discoveryTimeout bounds a look at what the cluster serves.
const discoveryTimeout = 5 * time.Second

// Controller adds the CloneSet controller to the manager, whose cache must be made with Cache.
func Controller(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("add indexes: %w", err)
	}
	writer, err := fastclient.NewClient(mgr, o.UserAgent)
	if err != nil {
		return fmt.Errorf("make the controller's client: %w", err)
	}
	gate, err := newGate(ctx, mgr, o)
	if err != nil {
		return fmt.Errorf("make the freshness gate: %w", err)
	}
	if err := mgr.Add(gate); err != nil {
		return fmt.Errorf("add the freshness gate: %w", err)
	}
	executor, err := execute.New(execute.Options{
		Client: writer, Live: mgr.GetAPIReader(), Recorder: gate, Metrics: metrics.Registry, Controller: cloneset.ControllerName,
	})
	if err != nil {
		return fmt.Errorf("make the executor: %w", err)
	}
	workers := o.Workers
	if workers == 0 {
		workers = DefaultWorkers
	}
	looker, err := newDiscovery(mgr)
	if err != nil {
		return err
	}
	return cloneset.New(cloneset.Config{
		Live:      mgr.GetAPIReader(),
		Reader:    fastclient.NewReader(mgr.GetCache(), mgr.GetScheme(), o.Reader),
		Freshness: gate,
		Executor:  executor,
		Status:    status.Writer{Client: writer, Recorder: gate},
		Events:    events.NewRecorder(mgr.GetEventRecorder("cloneset-controller")),
		Templates: podtemplate.New(writer, clock.RealClock{}),
		Discovery: looker,
		Cache:     mgr.GetCache(),
		Clock:     clock.RealClock{},
		Gates:     o.Gates,
	}).SetUp(mgr, workers)
}

// newDiscovery asks what the cluster serves. An answer that takes long is as good as none.
func newDiscovery(mgr ctrl.Manager) (*discovery.DiscoveryClient, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.Timeout = discoveryTimeout
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	return d, nil
}

// newGate watches over the kinds that the controller writes.
func newGate(ctx context.Context, mgr ctrl.Manager, o Options) (*freshness.Gate, error) {
	all, err := Cache(o.Namespace)
	if err != nil {
		return nil, err
	}
	written := map[client.Object]cache.ByObject{&v1beta1.CloneSet{}: fastclient.Within(o.Namespace, cache.ByObject{})}
	for kind, settings := range all.ByObject {
		switch kind.(type) {
		case *corev1.Pod, *corev1.PersistentVolumeClaim, *appsv1.ControllerRevision:
			written[kind] = settings
		}
	}
	return freshness.New(ctx, freshness.Options{
		Cache: mgr.GetCache(), Scheme: mgr.GetScheme(), Kinds: written, Live: mgr.GetAPIReader(),
		Clock: clock.RealClock{}, LeaderVersion: o.LeaderVersion,
	})
}
