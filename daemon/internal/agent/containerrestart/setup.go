package containerrestart

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/retries"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/stops"
)

// Config has the settings and dependencies of the controller.
type Config struct {
	pass.Settings
	// Node is the name of the node.
	Node     string
	Runtimes *cri.Runtimes
	Stopper  *containerstop.Stopper
}

// Requests returns the cache of the active requests of the node.
func Requests(node string) cache.ByObject {
	return cache.ByObject{
		Label:     labels.SelectorFromSet(labels.Set{v1beta1.NodeNameLabel: node, v1beta1.ActiveLabel: "true"}),
		Transform: fastclient.Trim,
	}
}

// SetUp adds the controller to the manager. The manager's cache must hold requests as Requests defines.
func SetUp(ctx context.Context, mgr ctrl.Manager, config Config) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta1.ContainerRecreateRequest{}, podIndex, func(o client.Object) []string {
		return []string{o.GetLabels()[v1beta1.PodUIDLabel]}
	})
	if err != nil {
		return fmt.Errorf("index requests by pod: %w", err)
	}
	parts, err := pass.New(ctx, mgr, pass.Options{
		Settings:      config.Settings,
		Controller:    controllerName,
		EventRecorder: config.Stopper.Events,
		Kinds:         map[client.Object]cache.ByObject{&v1beta1.ContainerRecreateRequest{}: Requests(config.Node)},
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: parts,
		stops:      stops.New(config.Stopper, parts.Clock, nil),
		wakeup:     make(chan event.TypedGenericEvent[ctrl.Request]),
		ending:     make(chan struct{}),
	}
	r.passes = NewPasses(Sources{
		Active: func(ctx context.Context, key types.NamespacedName) ([]*v1beta1.ContainerRecreateRequest, error) {
			return fastclient.ByIndex[v1beta1.ContainerRecreateRequest](ctx, parts.Reader, key.Namespace, podIndex, key.Name)
		},
		Refusals: func(pod client.Object, now time.Time) action.Refusals { return parts.KnownRefusals(pod, nil, 0, now) },
		Live:     parts.Live, Runtimes: config.Runtimes, Clock: parts.Clock,
	}, r.stops, r.wake)
	parts.AddMemories(r.passes)
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the end of stops: %w", err)
	}
	requests := source.Kind(mgr.GetCache(), &v1beta1.ContainerRecreateRequest{},
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, request *v1beta1.ContainerRecreateRequest) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: keyOf(request)}}
		}))
	ended := source.TypedChannel(r.wakeup, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, key ctrl.Request) []ctrl.Request { return []ctrl.Request{key} }))
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: retries.Limiter()}).
		WatchesRawSource(requests).
		WatchesRawSource(ended).
		Complete(r)
}
