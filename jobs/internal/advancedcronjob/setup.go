package advancedcronjob

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/controllers/pass"
	"github.com/flotilla-project/flotilla/core/plan/action"

	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
)

// ControllerName is the name of the controller in flags and its user agent, and begins those in logs and metrics.
const ControllerName = "advancedcronjob"

// workers is how many AdvancedCronJobs of a kind of jobs are reconciled at a time by default.
const workers = 3

// Options change how the controller works.
type Options struct {
	pass.Settings
	// Clock gives the time and ticks while a kind is missing; nil for the real one.
	Clock clock.WithTicker
}

// SetUp adds the controller to the manager: at once for the kinds of jobs that the cluster serves and the operator may
// read, for others as soon as they are.
func SetUp(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	discovery, err := optional.NewDiscovery(mgr.GetConfig(), 0)
	if err != nil {
		return err
	}
	for _, k := range kinds() {
		if err := setUp(ctx, mgr, o, k, discovery); err != nil {
			return fmt.Errorf("set up advanced cron jobs of kind %s: %w", k.name, err)
		}
	}
	return nil
}

func setUp(ctx context.Context, mgr ctrl.Manager, o Options, k *kind, discovery optional.Discovery) error {
	g := &optional.Gate{
		Kind:      k.optional,
		Discovery: discovery,
		Client:    mgr.GetClient(),
		Namespace: o.Namespace,
	}
	return optional.Begin(ctx, mgr, optional.Beginning{
		Ready:   g.Open,
		Without: func(ctx context.Context, over func() bool) error { return wait(ctx, mgr, o, k, g, over) },
		With:    func(ctx context.Context) error { return start(ctx, mgr, o, k) },
		Clock:   o.Clock,
	})
}

// start adds the controller of a kind of jobs: events of an AdvancedCronJob wake it, and events of its jobs that show
// how far they are.
func start(ctx context.Context, mgr ctrl.Manager, o Options, k *kind) error {
	if err := fastclient.IndexOwners(ctx, mgr.GetFieldIndexer(), k.object); err != nil {
		return err
	}
	b, err := newBase(ctx, mgr, o, k.controller(), map[client.Object]cache.ByObject{k.object: fastclient.Within(o.Namespace, k.cached())})
	if err != nil {
		return err
	}
	return add(mgr, k.controller(), k, o, &reconciler{Controller: b, passes: newPasses(b, k)}, func(c *builder.Builder) *builder.Builder {
		return c.Owns(k.object, builder.WithPredicates(k.progress()))
	})
}

// wait adds the controller that reports why no jobs of a kind are made.
func wait(ctx context.Context, mgr ctrl.Manager, o Options, k *kind, g *optional.Gate, over func() bool) error {
	name := k.controller() + "-waiting"
	b, err := newBase(ctx, mgr, o, name, map[client.Object]cache.ByObject{})
	if err != nil {
		return err
	}
	p := newPasses(b, k)
	p.Forbidden = g.Forbidden
	return add(mgr, name, k, o, &reconciler{Controller: b, passes: p, over: over}, func(c *builder.Builder) *builder.Builder { return c })
}

func newPasses(b *pass.Controller, k *kind) *passes {
	return &passes{
		kind:   k,
		Reader: b.Reader,
		Clock:  b.Clock,
		Refusals: func(of client.Object, now time.Time) action.Refusals {
			return b.KnownRefusals(of, nil, 0, now)
		},
	}
}

// newBase returns the parts of a controller that writes AdvancedCronJobs, and those kinds.
func newBase(ctx context.Context, mgr ctrl.Manager, o Options, name string, written map[client.Object]cache.ByObject) (*pass.Controller, error) {
	written[&v1beta1.AdvancedCronJob{}] = fastclient.Within(o.Namespace, cache.ByObject{})
	b, err := pass.New(ctx, mgr, pass.Options{
		Settings:    o.Settings,
		Controller:  name,
		EventSource: "advancedcronjob-controller",
		Kinds:       written,
	})
	if err != nil {
		return nil, err
	}
	b.Clock = o.Clock
	return b, nil
}

func add(mgr ctrl.Manager, name string, k *kind, o Options, r *reconciler, watch func(*builder.Builder) *builder.Builder) error {
	err := watch(ctrl.NewControllerManagedBy(mgr).Named(name).For(&v1beta1.AdvancedCronJob{}, builder.WithPredicates(k.crons()))).
		WithOptions(o.Options(workers)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("make the controller: %w", err)
	}
	return nil
}
