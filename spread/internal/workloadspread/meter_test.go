package workloadspread

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/admission"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

// seriesOf returns what the registry has of the spreads of a namespace.
func seriesOf(t *testing.T, namespace string) (all []string) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var values []string
			for _, label := range m.GetLabel() {
				values = append(values, label.GetValue())
			}
			if name, ours := strings.CutPrefix(family.GetName(), "flotilla_spread_"); ours && slices.Contains(values, namespace) {
				all = append(all, fmt.Sprintf("%s%v=%v", name, values[1:], m.GetGauge().GetValue()+m.GetCounter().GetValue()))
			}
		}
	}
	return all
}

func TestMetricsTellOfEachSubset(t *testing.T) {
	const namespace = "metered"
	web, m := types.NamespacedName{Namespace: namespace, Name: "web"}, newMeter()
	m.show(web, plan.Numbers{Without: 2, Subsets: []plan.SubsetNumbers{
		{Name: "a", Active: 3, Coming: 1, Limit: 4, Closed: true}, {Name: "b", Active: 5, Limit: plan.Unlimited},
	}})
	Unplaced(namespace, "web", admission.NoRoom)
	assert.Equal(t, []string{
		"pods_without_subset[web]=2",
		"subset_closed[a web]=1", "subset_closed[b web]=0", "subset_limit[a web]=4",
		"subset_pods[active a web]=3", "subset_pods[active b web]=5", "subset_pods[coming a web]=1", "subset_pods[coming b web]=0",
		"unplaced_pods_total[NoRoom web]=1",
	}, seriesOf(t, namespace))

	m.show(web, plan.Numbers{Subsets: []plan.SubsetNumbers{{Name: "c", Limit: plan.Unlimited}}})
	assert.Equal(t, []string{
		"pods_without_subset[web]=0", "subset_closed[c web]=0", "subset_pods[active c web]=0", "subset_pods[coming c web]=0",
		"unplaced_pods_total[NoRoom web]=1",
	}, seriesOf(t, namespace), "the list has changed")
	m.Forget(web)
	assert.Equal(t, []string{"unplaced_pods_total[NoRoom web]=1"}, seriesOf(t, namespace))
}
