package meter

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// series are the metrics of one controller.
type series struct {
	planning, starts                               prometheus.Observer
	inPlace, recreated                             prometheus.Counter
	waiting, unavailable, maxUnavailable, troubled *prometheus.GaugeVec
}

func newSeries(registerer prometheus.Registerer, controller string) (series, error) {
	// In seconds: plans of small and large workloads, and pods with images that are on the node or missing.
	planBuckets := prometheus.ExponentialBuckets(0.0001, 4, 8)
	startBuckets := []float64{0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600}
	r := registry{registerer, prometheus.Labels{"controller": controller}, nil}
	planning := r.histogram(prometheus.HistogramOpts{
		Name: "flotilla_plan_seconds", Help: "Duration of planning in a reconcile, without reads and writes.", Buckets: planBuckets,
	}, "controller")
	starts := r.histogram(prometheus.HistogramOpts{
		Name: "flotilla_pod_start_seconds", Help: "Time from the creation of a pod until it was first seen ready.", Buckets: startBuckets,
	}, "controller")
	updates := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flotilla_pod_updates_total", Help: "Pods that were changed to another revision, by way: in place, or deleted for a new pod.",
	}, []string{"controller", "way"})
	r.register(updates, func(there prometheus.Collector) { updates = there.(*prometheus.CounterVec) })
	s := series{
		waiting: r.gauge(prometheus.GaugeOpts{
			Name: "flotilla_waiting_workloads", Help: "Workloads that differ from their spec, by the reason of condition Ready.",
		}, "controller", "reason"),
		unavailable: r.gauge(prometheus.GaugeOpts{
			Name: "flotilla_workload_unavailable_pods", Help: "Desired pods of the workload that are unavailable.",
		}, "controller", "namespace", "name"),
		maxUnavailable: r.gauge(prometheus.GaugeOpts{
			Name: "flotilla_workload_max_unavailable_pods", Help: "Pods that may be unavailable during an update of the workload.",
		}, "controller", "namespace", "name"),
		troubled: r.gauge(prometheus.GaugeOpts{
			Name: "flotilla_workload_troubled_pods", Help: "Pods of the workload that stay unready, by reason and revision.",
		}, "controller", "namespace", "name", "reason", "revision"),
	}
	if r.err != nil {
		return s, fmt.Errorf("register the metrics of workloads: %w", r.err)
	}
	s.planning = planning.WithLabelValues(controller)
	s.starts = starts.WithLabelValues(controller)
	s.inPlace = updates.WithLabelValues(controller, "in_place")
	s.recreated = updates.WithLabelValues(controller, "recreate")
	return s, nil
}

// registry registers metrics, or finds those that another controller of the process has registered.
type registry struct {
	prometheus.Registerer
	controller prometheus.Labels
	err        error
}

func (r *registry) register(c prometheus.Collector, found func(prometheus.Collector)) {
	err := r.Register(c)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		found(there.ExistingCollector)
		return
	}
	r.err = errors.Join(r.err, err)
}

func (r *registry) histogram(o prometheus.HistogramOpts, labels ...string) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(o, labels)
	r.register(vec, func(there prometheus.Collector) { vec = there.(*prometheus.HistogramVec) })
	return vec
}

func (r *registry) gauge(o prometheus.GaugeOpts, labels ...string) *prometheus.GaugeVec {
	vec := prometheus.NewGaugeVec(o, labels)
	r.register(vec, func(there prometheus.Collector) { vec = there.(*prometheus.GaugeVec) })
	return vec.MustCurryWith(r.controller)
}
