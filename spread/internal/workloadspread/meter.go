package workloadspread

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/admission"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// The metrics are global as their registry is.
var (
	subsetPods = prometheus.NewGaugeVec(prometheus.GaugeOpts{ //nolint:gochecknoglobals // see above
		Name: "flotilla_spread_subset_pods",
		Help: "Pods of a subset of a WorkloadSpread: active pods, and admitted pods that are not created yet.",
	}, []string{"namespace", "workloadspread", "subset", "state"})
	subsetLimit = prometheus.NewGaugeVec(prometheus.GaugeOpts{ //nolint:gochecknoglobals // see above
		Name: "flotilla_spread_subset_limit",
		Help: "Largest number of pods of a revision in a subset with maxReplicas.",
	}, []string{"namespace", "workloadspread", "subset"})
	subsetClosed = prometheus.NewGaugeVec(prometheus.GaugeOpts{ //nolint:gochecknoglobals // see above
		Name: "flotilla_spread_subset_closed",
		Help: "1 while a subset gets no pods because pods were unschedulable there, 0 otherwise.",
	}, []string{"namespace", "workloadspread", "subset"})
	podsWithout = prometheus.NewGaugeVec(prometheus.GaugeOpts{ //nolint:gochecknoglobals // see above
		Name: "flotilla_spread_pods_without_subset",
		Help: "Active pods of the target of a WorkloadSpread without a subset.",
	}, []string{"namespace", "workloadspread"})
	unplaced = prometheus.NewCounterVec(prometheus.CounterOpts{ //nolint:gochecknoglobals // see above
		Name: "flotilla_spread_unplaced_pods_total",
		Help: "Pods that were created without a subset of their WorkloadSpread, by reason.",
	}, []string{"namespace", "workloadspread", "reason"})
)

func init() { //nolint:gochecknoinits // the registry is global
	metrics.Registry.MustRegister(subsetPods, subsetLimit, subsetClosed, podsWithout, unplaced)
}

// Unplaced counts a creation of a pod that got no subset.
func Unplaced(namespace, spread string, reason admission.Reason) {
	unplaced.WithLabelValues(namespace, spread, string(reason)).Inc()
}

// meter sets the metrics of spreads. It implements pass.Memory.
type meter struct {
	mu      sync.Mutex
	subsets map[types.NamespacedName][]string // that have series
}

func newMeter() *meter { return &meter{subsets: map[types.NamespacedName][]string{}} }

// show sets the numbers that a pass has found. Series of subsets that the spread has not any more end.
func (m *meter) show(spread types.NamespacedName, n plan.Numbers) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, s := range n.Subsets {
		names = append(names, s.Name)
	}
	for _, name := range m.subsets[spread] {
		if !slices.Contains(names, name) {
			end(prometheus.Labels{"namespace": spread.Namespace, "workloadspread": spread.Name, "subset": name}, subsetPods, subsetLimit, subsetClosed)
		}
	}
	m.subsets[spread] = names
	for _, s := range n.Subsets {
		labels := []string{spread.Namespace, spread.Name, s.Name}
		subsetPods.WithLabelValues(append(labels, "active")...).Set(float64(s.Active))
		subsetPods.WithLabelValues(append(labels, "coming")...).Set(float64(s.Coming))
		closed := subsetClosed.WithLabelValues(labels...)
		if closed.Set(0); s.Closed {
			closed.Set(1)
		}
		if s.Limit == subsets.Unlimited {
			subsetLimit.DeleteLabelValues(labels...)
		} else {
			subsetLimit.WithLabelValues(labels...).Set(float64(s.Limit))
		}
	}
	podsWithout.WithLabelValues(spread.Namespace, spread.Name).Set(float64(n.Without))
}

// Forget implements pass.Memory.
func (m *meter) Forget(spread types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.subsets, spread)
	end(prometheus.Labels{"namespace": spread.Namespace, "workloadspread": spread.Name}, subsetPods, subsetLimit, subsetClosed, podsWithout)
}

func end(series prometheus.Labels, of ...*prometheus.GaugeVec) {
	for _, vec := range of {
		vec.DeletePartialMatch(series)
	}
}
