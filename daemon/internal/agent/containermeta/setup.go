package containermeta

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/containerstop"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
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
	Metrics  *metrics.Metrics
	// Spread returns a time between 0 and its argument: pods that are older than the agent are not
	// all reported at once.
	Spread func(time.Duration) time.Duration
	// EnvFromMetadata enables reading environments and restarting containers.
	EnvFromMetadata bool
}

// Pods returns the cache of the node's pods, trimmed by Trim.
func Pods(node string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("spec.nodeName", node), Transform: trim}
}

// SetUp adds the controller to the manager. The manager's cache must hold pods as Pods defines.
func SetUp(ctx context.Context, mgr ctrl.Manager, config Config) error {
	parts, err := pass.New(ctx, mgr, pass.Options{
		Settings:      config.Settings,
		Controller:    controllerName,
		EventRecorder: config.Stopper.Events,
		Kinds:         map[client.Object]cache.ByObject{&corev1.Pod{}: Pods(config.Node)},
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Controller: parts,
		config:     config,
		stops:      stops.New(config.Stopper, parts.Clock, nil),
	}
	r.passes = NewPasses(Sources{
		Pod: func(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
			return fastclient.Get[corev1.Pod](ctx, parts.Reader, key)
		},
		Refusals: func(pod client.Object, now time.Time) action.Refusals { return parts.KnownRefusals(pod, nil, 0, now) },
		Live:     parts.Live, Runtimes: config.Runtimes, Clock: parts.Clock, Metrics: config.Metrics,
		EnvFromMetadata: config.EnvFromMetadata,
	}, r.stops)
	parts.AddMemories(r.passes, r.stops)
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add the end of restarts: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             retries.Limiter(),
		}).
		Watches(&corev1.Pod{}, r.events()).
		Complete(r)
}
