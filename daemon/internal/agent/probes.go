package agent

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

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

// handler returns the handler behind --addr. The kubelet sends no token, so that probes are open.
func (a *agent) handler(gatherer prometheus.Gatherer) (http.Handler, error) {
	metrics, err := process.Metrics{
		Gatherer: gatherer, Secure: a.MetricsSecure, Config: a.config, Log: a.Log.WithName("metrics"),
	}.Handler()
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", serveAlive)
	mux.Handle("/readyz", a.probes)
	mux.Handle(process.MetricsPath, metrics)
	return mux, nil
}
