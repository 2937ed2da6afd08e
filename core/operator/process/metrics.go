package process

import (
	"net/http"
	"net/http/pprof"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
)

// MetricsPath is the path of metrics.
const MetricsPath = "/metrics"

// Metrics are the settings of metrics.
type Metrics struct {
	Gatherer prometheus.Gatherer
	// Secure answers only clients with a token that allows them to get the path. Otherwise all clients are answered.
	Secure bool
	// Config is the client configuration for asking the API server about tokens, if Secure. Its user must be allowed to
	// create TokenReviews and SubjectAccessReviews.
	Config *rest.Config
	Log    logr.Logger
}

// Handler returns the handler for MetricsPath.
func (m Metrics) Handler() (http.Handler, error) {
	handler := promhttp.HandlerFor(m.Gatherer, promhttp.HandlerOpts{})
	if !m.Secure {
		return handler, nil
	}
	reviewer, err := newReviewer(m.Config, m.Log)
	if err != nil {
		return nil, err
	}
	return reviewer.restrict(handler), nil
}

// Profiles returns a handler of the runtime's profiles, at the usual paths below /debug/pprof/.
func Profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
