package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flotilla-project/flotilla/core/controllers/fastclient"
	"github.com/flotilla-project/flotilla/core/operator/process"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"

	"github.com/flotilla-project/flotilla/daemon/internal/agent/cri"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/metrics"
)

const (
	// Name is the name of the process in messages and in its user agent.
	Name = "daemon-agent"
	// shutdownGrace is how long stops of containers may continue once the agent is asked to end. The pod's own
	// grace period is a little longer.
	shutdownGrace = 9 * time.Second
)

// agent holds the parts that the process shares.
type agent struct {
	Options
	config   *rest.Config
	scheme   *runtime.Scheme
	clock    clock.WithTicker
	metrics  *metrics.Metrics
	probes   *probes
	runtimes *cri.Runtimes
	wake     chan struct{} // has an element when runtimes have come or gone
}

// Run runs the agent until ctx ends or an error occurs that waiting cannot solve.
func Run(ctx context.Context, options Options, config *rest.Config) error {
	registry := prometheus.NewRegistry()
	a, err := newAgent(options, config, registry)
	if err != nil {
		return err
	}
	handler, err := a.handler(prometheus.Gatherers{registry, ctrlmetrics.Registry})
	if err != nil {
		return err
	}
	// Probes and runtimes outlive the work: stops under way continue when the agent is asked to end.
	services, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, services := errgroup.WithContext(services)
	serve := func(endpoint process.Endpoint, handler http.Handler) {
		group.Go(func() error { return endpoint.Serve(services, handler) })
	}
	serve(process.Endpoint{Address: options.Addr, Secure: options.MetricsSecure}, handler)
	if options.EnablePprof {
		serve(process.Endpoint{Address: options.PprofAddr}, process.Profiles())
	}
	a.runtimes.Probe(ctx)
	group.Go(func() error { return a.runtimes.Start(services) })

	working, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(services, cancel)() // a service that fails ends the work
	err = a.runControllers(working)
	stop()
	return errors.Join(err, group.Wait())
}

func newAgent(options Options, config *rest.Config, registry *prometheus.Registry) (*agent, error) {
	measured, err := metrics.New(registry)
	if err != nil {
		return nil, err
	}
	a := &agent{
		Options: options,
		config:  restConfig(config, &options),
		scheme:  runtime.NewScheme(),
		clock:   clock.RealClock{},
		metrics: measured,
		probes:  newProbes(),
		wake:    make(chan struct{}, 1),
	}
	if err := errors.Join(clientgoscheme.AddToScheme(a.scheme), v1beta1.AddToScheme(a.scheme)); err != nil {
		return nil, fmt.Errorf("build scheme: %w", err)
	}
	a.runtimes = cri.New(cri.Config{
		Root:       options.SocketRoot,
		SocketFile: options.SocketFile,
		Metrics:    measured,
		Clock:      a.clock,
		Log:        options.Log.WithName("cri"),
		Changed:    a.runtimesChanged,
	})
	a.probes.add("runtime", a.runtimes.Ready)
	a.probes.add("controllers", func() error { return errors.New("setup has not finished") })
	return a, nil
}

func (a *agent) runtimesChanged() {
	select {
	case a.wake <- struct{}{}:
	default: // the pending wake-up is enough
	}
}

// restConfig returns the client configuration, with a rate limit only if the options set one.
func restConfig(config *rest.Config, options *Options) *rest.Config {
	config = options.Limit(config)
	config.UserAgent = Name
	fastclient.WriteOnce(config)
	return config
}

// runControllers returns everything that needs the definitions of our kinds.
func (a *agent) runControllers(ctx context.Context) error {
	if err := a.waitForDefinitions(ctx); err != nil {
		return nil //nolint:nilerr // it ends with ctx only
	}
	mgr, err := ctrl.NewManager(a.config, ctrl.Options{
		Scheme:                  a.scheme,
		Logger:                  a.Log,
		Cache:                   cacheOptions(a.Node),
		Metrics:                 metricsserver.Options{BindAddress: "0"}, // served by the same server as the probes
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: new(shutdownGrace),
		Controller: ctrlconfig.Controller{
			SkipNameValidation: new(true),  // tests run several agents in one process
			UsePriorityQueue:   new(false), // as in the operators
		},
	})
	if err != nil {
		return fmt.Errorf("set up manager: %w", err)
	}
	if err := a.setUp(ctx, mgr); err != nil {
		return err
	}
	a.probes.add("controllers", func() error { return nil }) // each has a check of its own from here on
	err = process.RunManager(ctx, mgr, a.clock)
	if err != nil && ctx.Err() != nil { // asked to end: the next agent continues a stop that takes longer
		a.Log.Info("The shutdown took too long", "reason", err.Error())
		return nil //nolint:nilerr // it is logged, and no error
	}
	return err
}

// jitter changes a length of time by up to a tenth.
func (o *Options) jitter(length time.Duration) time.Duration {
	return length + time.Duration((o.Random()-0.5)*0.2*float64(length))
}

// spread returns a random part of a length of time.
func (o *Options) spread(length time.Duration) time.Duration {
	return time.Duration(o.Random() * float64(length))
}
