package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of label result.
const (
	ResultSucceeded = "succeeded"
	ResultFailed    = "failed"
)

// Metrics are the agent's collectors.
type Metrics struct {
	// RuntimeReady is 1 while a container runtime answers.
	RuntimeReady prometheus.Gauge
	// CRIErrors counts failed calls of the runtime by name of the call.
	CRIErrors *prometheus.CounterVec
	// PullSeconds is how long a tag took from its slot to its end, by result.
	PullSeconds *prometheus.HistogramVec
	// Pulls is how many tags are in each phase.
	Pulls *prometheus.GaugeVec
	// PullWorkers is how many tags may be pulled at a time; 0 means no limit.
	PullWorkers prometheus.Gauge
	// Kills counts stopped containers by reason and result.
	Kills *prometheus.CounterVec
	// PreStopSeconds is how long preStop hooks took.
	PreStopSeconds prometheus.Histogram
	// MetaPatches counts the patches of the annotation with container metadata.
	MetaPatches prometheus.Counter
}

// New makes the collectors and registers them. The error names the collector that the registry already has.
func New(registry prometheus.Registerer) (*Metrics, error) {
	seconds := []float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600}
	m := &Metrics{
		RuntimeReady: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kruise_agent_runtime_ready", Help: "1 while a container runtime answers, 0 otherwise.",
		}),
		CRIErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_agent_cri_errors_total", Help: "Calls of the container runtime that failed.",
		}, []string{"call"}),
		PullSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kruise_agent_image_pull_seconds", Help: "How long the pull of a tag took with all its attempts.", Buckets: seconds,
		}, []string{"result"}),
		Pulls: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kruise_agent_image_pulls", Help: "Tags of this node's NodeImage by phase.",
		}, []string{"phase"}),
		PullWorkers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kruise_agent_image_pull_workers", Help: "How many tags may be pulled at a time; 0 means no limit.",
		}),
		Kills: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kruise_agent_container_kills_total", Help: "Containers that the agent stopped.",
		}, []string{"reason", "result"}),
		PreStopSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kruise_agent_prestop_seconds",
			Help:    "How long preStop hooks took.",
			Buckets: seconds,
		}),
		MetaPatches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kruise_agent_meta_patches_total", Help: "Patches of the annotation with container metadata.",
		}),
	}
	for _, collector := range []prometheus.Collector{
		m.RuntimeReady, m.CRIErrors, m.PullSeconds, m.Pulls, m.PullWorkers, m.Kills, m.PreStopSeconds, m.MetaPatches,
	} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

// Result returns the value of label result for an error.
func Result(err error) string {
	if err != nil {
		return ResultFailed
	}
	return ResultSucceeded
}
