package imagepull

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/events"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/retries"
)

// Config has the settings and dependencies of the controller.
type Config struct {
	pass.Settings
	// Node is the name of the node, and of its NodeImage.
	Node        string
	Runtimes    *cri.Runtimes
	Credentials Credentials
	Events      *events.Recorder
	Metrics     *metrics.Metrics
	Clock       clock.Clock
	// Jitter changes a duration a little, so that nodes that failed together do not try again together.
	Jitter func(time.Duration) time.Duration
	// Slots is how many pulls may run at a time; 0 or less means any number.
	Slots int
}

// NodeImages returns the cache of the node's own NodeImage.
func NodeImages(node string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", node), Transform: fastclient.Trim}
}

// SetUp adds the controller to the manager. The manager's cache must hold NodeImages as NodeImages defines.
func SetUp(ctx context.Context, mgr ctrl.Manager, config Config) (*Puller, error) {
	parts, err := pass.New(ctx, mgr, pass.Options{
		Settings:      config.Settings,
		Controller:    controllerName,
		EventRecorder: config.Events,
		Kinds:         map[client.Object]cache.ByObject{&v1beta1.NodeImage{}: NodeImages(config.Node)},
	})
	if err != nil {
		return nil, err
	}
	p := &Puller{
		Controller: parts,
		config:     config,
		limiter:    flowcontrol.NewTokenBucketRateLimiter(writesPerSecond, writeBurst),
		wakeup:     make(chan event.GenericEvent, 1),
	}
	p.pulls = &pulls{wake: p.Wake, puller: &puller{
		node:        config.Node,
		runtimes:    config.Runtimes,
		credentials: config.Credentials,
		clock:       config.Clock,
		jitter:      config.Jitter,
	}}
	config.Metrics.PullWorkers.Set(float64(max(config.Slots, 0)))
	if err := mgr.Add(p); err != nil {
		return nil, fmt.Errorf("add the end of pulls: %w", err)
	}
	return p, ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		WithOptions(controller.Options{RateLimiter: retries.Limiter()}).
		For(&v1beta1.NodeImage{}).
		WatchesRawSource(source.Channel(p.wakeup, &handler.EnqueueRequestForObject{})).
		Complete(p)
}
