package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/controllers/optional"
	"github.com/flotilla-project/flotilla/core/operator/process"
)

// services run from start to end of the process, on every replica: probes, metrics, profiles, certificates, webhooks.
// They stop after the controllers, so that the last writes of those can still be converted.
type services struct {
	group      *errgroup.Group
	ended      <-chan struct{} // closed when the first of them fails, or when stopped
	cancel     context.CancelFunc
	unregister func()
}

func startServices(ctx context.Context, env *Environment, config *rest.Config, hooks *webhooks, startup *startup) (*services, error) {
	options := env.Options
	metricsAt, profilesAt := options.endpoints()
	var scrapes http.Handler
	if metricsAt != nil {
		var err error
		if scrapes, err = metricsHandler(env, config); err != nil {
			return nil, fmt.Errorf("set up metrics: %w", err)
		}
	}
	leader := leaderGauge()
	collectors := []prometheus.Collector{leader, buildInfo(env.Feature), optional.Forbidden()}
	if hooks != nil {
		collectors = append(collectors, hooks.certificates.Collectors()...)
		if metricsAt != nil {
			metricsAt.Certificate = hooks.certificates.Source().GetCertificate
		}
	}
	unregister, err := register(metrics.Registry, collectors...)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	group, ended := errgroup.WithContext(ctx)
	serve := func(endpoint process.Endpoint, handler http.Handler) {
		group.Go(func() error { return endpoint.Serve(ended, handler) })
	}
	serve(process.Endpoint{Address: options.HealthProbeAddr}, probeHandler(hooks, startup))
	if metricsAt != nil {
		serve(*metricsAt, scrapes)
	}
	if profilesAt != nil {
		serve(*profilesAt, process.Profiles())
	}
	if hooks != nil {
		group.Go(func() error { return hooks.certificates.Start(ended) })
		group.Go(func() error { return hooks.server.Start(ended) })
	}
	group.Go(func() error {
		select {
		case <-env.Manager.Elected():
			leader.Set(1)
		case <-ended.Done():
		}
		return nil
	})
	return &services{
		group:      group,
		ended:      ended.Done(),
		cancel:     cancel,
		unregister: unregister,
	}, nil
}

// metricsHandler serves controller-runtime's registry, which has the metrics of controllers, clients and work queues.
func metricsHandler(env *Environment, config *rest.Config) (http.Handler, error) {
	handler, err := process.Metrics{
		Gatherer: metrics.Registry,
		Secure:   env.Options.MetricsSecure,
		Config:   withUserAgent(config, env.Feature, "metrics"),
		Log:      env.Log.WithName("metrics"),
	}.Handler()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle(process.MetricsPath, handler)
	return mux, nil
}

// whileRunning calls run with a context that ends when a service fails.
func (s *services) whileRunning(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return run(ctx)
}

// beginLameDuck makes the process not ready once ctx ends, and returns a channel that is closed when the services may
// end: API servers continue to call the webhooks of a replica until its state "not ready" has reached them.
func (s *services) beginLameDuck(ctx context.Context, hooks *webhooks, startup *startup, length time.Duration) <-chan struct{} {
	ends := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ends)
		startup.NotReady("the process is shutting down")
		if hooks == nil {
			return
		}
		hooks.leaving.Store(true)
		select {
		case <-time.After(length):
		case <-s.ended: // there is nothing to wait for
		}
	})
	return ends
}

// stop stops the services and returns the error of the first that failed.
func (s *services) stop() error {
	s.cancel()
	s.unregister()
	return s.group.Wait()
}

// probeHandler serves the probes of the kubelet: healthz for a process that answers, readyz for one that can serve
// requests.
func probeHandler(hooks *webhooks, startup *startup) http.Handler {
	ready := &healthz.Handler{Checks: map[string]healthz.Checker{"startup": func(*http.Request) error { return startup.Check() }}}
	if hooks != nil {
		ready.Checks["webhook-ready"] = func(request *http.Request) error { return hooks.ready(request.Context()) }
	}
	alive := &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}

	mux := http.NewServeMux()
	for path, handler := range map[string]http.Handler{"/healthz": alive, "/readyz": ready} {
		mux.Handle(path, http.StripPrefix(path, handler))
		mux.Handle(path+"/", http.StripPrefix(path, handler))
	}
	return mux
}
