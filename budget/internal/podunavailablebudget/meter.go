package podunavailablebudget

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
)

// budgetPods is global as its registry is.
var budgetPods = prometheus.NewGaugeVec(prometheus.GaugeOpts{ //nolint:gochecknoglobals // see above
	Name: "flotilla_budget_pods",
	Help: "Pods of a PodUnavailableBudget: total (desired by the workloads), desired (must stay available), current (available), allowed (can be disrupted now) and guarded (checked by the webhook).",
}, []string{"namespace", "budget", "state"})

func init() { metrics.Registry.MustRegister(budgetPods) } //nolint:gochecknoinits // the registry is global

// meter sets the metric of budgets. It implements pass.Memory.
type meter struct{}

// show sets the numbers that a pass has found. guarded is how many pods have a mark, without which the API server does not
// ask.
func (meter) show(budget types.NamespacedName, s *v1beta1.PodUnavailableBudgetStatus, guarded int32) {
	for state, n := range map[string]int32{
		"total":   s.TotalReplicas,
		"desired": s.DesiredAvailable,
		"current": s.CurrentAvailable,
		"allowed": s.UnavailableAllowed,
		"guarded": guarded,
	} {
		budgetPods.WithLabelValues(budget.Namespace, budget.Name, state).Set(float64(n))
	}
}

// Forget implements pass.Memory.
func (meter) Forget(budget types.NamespacedName) {
	budgetPods.DeletePartialMatch(prometheus.Labels{"namespace": budget.Namespace, "budget": budget.Name})
}
