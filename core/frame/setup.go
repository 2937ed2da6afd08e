package frame

import (
	"context"
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/controllers/podtemplate"
	"github.com/flotilla-project/flotilla/core/internal/frame/history"
	"github.com/flotilla-project/flotilla/core/internal/frame/meter"
	"github.com/flotilla-project/flotilla/core/internal/frame/orphans"
	"github.com/flotilla-project/flotilla/core/internal/frame/pulljobs"
)

// discoveryTimeout bounds one discovery request. A slow answer counts as no answer.
const discoveryTimeout = 5 * time.Second

// Options describe the controller of one workload.
type Options struct {
	pass.Settings
	// Controller names the controller in logs and metrics.
	Controller string
	// EventSource is the name under which users see its events.
	EventSource string
	// Kind is an object of the workload's kind.
	Kind client.Object
	// Cache are the options of the manager's cache. Its pods, claims and revisions are indexed by owner and counted
	// among the kinds that the controller writes.
	Cache cache.Options
	// Fenced are further kinds on which plans rest, with their settings in Cache: a new leader waits for their caches, too.
	Fenced map[client.Object]cache.ByObject
	// PodLabel is the label of the pods that Cache selects.
	PodLabel string
}

// Controller has the parts of a workload controller: those of every controller (package pass), the revision history of its
// template, the search for pods that its cache does not show, and image pull jobs. It holds no state that the cluster
// does not hold; the memory of its parts only saves requests.
type Controller struct {
	*pass.Controller
	// Cache is the manager's cache, for kinds that few workloads need.
	Cache cache.Cache
	// Templates asks the server for the defaults of templates.
	Templates *podtemplate.Checker
	// History finds the revision of a template.
	History *history.History
	// Orphans finds pods that the cache does not show.
	Orphans *orphans.Finder
	// PullJobs manages image pull jobs.
	PullJobs *pulljobs.Jobs
	// Meter counts the work of the controller.
	Meter *meter.Meter
}

// NewController creates the parts of a workload controller and adds to the manager the parts that must run with it. Call
// it before the manager's cache starts.
func NewController(ctx context.Context, mgr ctrl.Manager, o Options) (*Controller, error) {
	if err := AddIndexes(ctx, mgr.GetFieldIndexer(), o.Cache); err != nil {
		return nil, err
	}
	kinds := writtenKinds(o.Cache)
	kinds[o.Kind] = fastclient.Within(o.Namespace, cache.ByObject{})
	maps.Copy(kinds, o.Fenced)
	c, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  o.Controller,
		EventSource: o.EventSource,
		Kinds:       kinds,
	})
	if err != nil {
		return nil, err
	}
	served, err := optional.NewDiscovery(mgr.GetConfig(), discoveryTimeout)
	if err != nil {
		return nil, err
	}
	return Assemble(c, Parts{
		Cache:      mgr.GetCache(),
		Discovery:  served,
		Metrics:    metrics.Registry,
		Controller: o.Controller,
		PodLabel:   o.PodLabel,
	})
}

// Parts are the inputs of the parts that only a workload controller has.
type Parts struct {
	// Cache is the cache that the controller reads.
	Cache cache.Cache
	// Discovery reports which kinds are served.
	Discovery optional.Discovery
	// Metrics is where the series of the controller, which has the name Controller there, are registered.
	Metrics    prometheus.Registerer
	Controller string
	// PodLabel is the label of the pods that the cache selects.
	PodLabel string
}

// Assemble creates the parts of a workload controller.
func Assemble(c *pass.Controller, p Parts) (*Controller, error) {
	counts, err := meter.New(p.Metrics, p.Controller)
	if err != nil {
		return nil, err
	}
	templates := podtemplate.New(c.Client, c.Clock)
	w := &Controller{
		Controller: c,
		Cache:      p.Cache,
		Templates:  templates,
		History:    history.New(c.Reader, templates),
		Orphans:    orphans.New(uncontrolled(c.Reader), c.Live, p.PodLabel),
		PullJobs: pulljobs.New(pulljobs.Options{
			Discovery: p.Discovery,
			Cache:     p.Cache,
			Executor:  c.Executor,
			Events:    c.Events,
			Clock:     c.Clock,
		}),
		Meter: counts,
	}
	c.AddMemories(w.History, w.Orphans, w.PullJobs, w.Meter)
	return w, nil
}

// AddIndexes adds the indexes that a Controller reads to a cache with the options.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer, o cache.Options) error {
	for kind := range writtenKinds(o) {
		if err := fastclient.IndexOwners(ctx, indexer, kind); err != nil {
			return err
		}
	}
	return fastclient.IndexUncontrolled(ctx, indexer, &corev1.Pod{}, &appsv1.ControllerRevision{})
}

// writtenKinds returns the kinds, except its own, that a workload controller writes and the cache holds.
func writtenKinds(o cache.Options) map[client.Object]cache.ByObject {
	kinds := map[client.Object]cache.ByObject{}
	for kind, settings := range o.ByObject {
		switch kind.(type) {
		case *corev1.Pod, *corev1.PersistentVolumeClaim, *appsv1.ControllerRevision:
			kinds[kind] = settings
		}
	}
	return kinds
}

// uncontrolled returns a function that lists the cached pods of a namespace without a controller.
func uncontrolled(r *fastclient.Reader) func(context.Context, string) ([]*corev1.Pod, error) {
	return func(ctx context.Context, namespace string) ([]*corev1.Pod, error) {
		return fastclient.Uncontrolled[corev1.Pod](ctx, r, namespace)
	}
}
