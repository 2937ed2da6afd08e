package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"github.com/flotilla-project/flotilla/core/operator/process"
)

// probes answer the kubelet: an agent is alive if it answers, and ready if it can do all of its work. A restart does
// not help against a missing runtime or definition, so neither affects liveness.
type probes struct {
	mu     sync.Mutex
	checks map[string]func() error
}

func newProbes() *probes { return &probes{checks: map[string]func() error{}} }

// add adds a check of readiness; one of the same name is replaced.
func (p *probes) add(name string, check func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks[name] = check
}

// ServeHTTP lists all checks, and those that fail with their reason.
func (p *probes) ServeHTTP(answer http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var good, bad []string
	for name, check := range p.checks {
		if err := check(); err != nil {
			bad = append(bad, fmt.Sprintf("check %s failed, err: %v", name, err))
		} else {
			good = append(good, fmt.Sprintf("check %s ok", name))
		}
	}
	slices.Sort(good)
	slices.Sort(bad)
	if len(bad) > 0 {
		answer.WriteHeader(http.StatusInternalServerError)
	}
	fmt.Fprintln(answer, strings.Join(append(bad, good...), "\n"))
}

func serveAlive(answer http.ResponseWriter, _ *http.Request) { fmt.Fprint(answer, "ok") }

// handler returns what --addr serves, with the certificate for it: nil for plain HTTP. The kubelet sends no
// token and checks no certificate, so probes are open and the certificate is self-signed.
func (a *agent) handler(gatherer prometheus.Gatherer) (http.Handler, *tls.Certificate, error) {
	var certificate *tls.Certificate
	metrics := promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{})
	if a.MetricsSecure {
		var err error
		if metrics, err = a.authorized(metrics); err != nil {
			return nil, nil, fmt.Errorf("guard metrics: %w", err)
		}
		if certificate, err = selfSigned(); err != nil {
			return nil, nil, fmt.Errorf("make a certificate: %w", err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", serveAlive)
	mux.Handle("/readyz", a.probes)
	mux.Handle("/metrics", metrics)
	return mux, certificate, nil
}

// authorized answers requests whose token may get the path.
func (a *agent) authorized(handler http.Handler) (http.Handler, error) {
	client, err := rest.HTTPClientFor(a.config)
	if err != nil {
		return nil, err
	}
	filter, err := filters.WithAuthenticationAndAuthorization(a.config, client)
	if err != nil {
		return nil, err
	}
	return filter(a.Log.WithName("metrics"), handler)
}

func selfSigned() (*tls.Certificate, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	return &pair, err
}

// profiles returns what --pprof-addr serves.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// serve answers on an address until ctx ends: by TLS with a certificate, plainly without.
func serve(ctx context.Context, address string, handler http.Handler, certificate *tls.Certificate) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
	}
	if err := process.Serve(ctx, listener, handler); err != nil {
		return fmt.Errorf("serve on %s: %w", address, err)
	}
	return nil
}
