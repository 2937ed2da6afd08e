package workloadspread

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/core/testing/series"

	"github.com/flotilla-project/flotilla/spread/internal/subsets"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/admission"
	"github.com/flotilla-project/flotilla/spread/internal/workloadspread/plan"
)

func TestMetricsTellOfEachSubset(t *testing.T) {
	namespace := fmt.Sprint("metered-", time.Now().UnixNano()) // the registry keeps counters for another run in this process
	web, m := types.NamespacedName{Namespace: namespace, Name: "web"}, newMeter()
	m.show(web, plan.Numbers{Without: 2, Subsets: []plan.SubsetNumbers{
		{Name: "a", Active: 3, Coming: 1, Limit: 4, Closed: true}, {Name: "b", Active: 5, Limit: subsets.Unlimited},
	}})
	Unplaced(namespace, "web", admission.NoRoom)
	assert.Equal(t, []string{
		"pods_without_subset[web]=2",
		"subset_closed[a web]=1", "subset_closed[b web]=0", "subset_limit[a web]=4",
		"subset_pods[active a web]=3", "subset_pods[active b web]=5", "subset_pods[coming a web]=1", "subset_pods[coming b web]=0",
		"unplaced_pods_total[NoRoom web]=1",
	}, series.Of(t, "flotilla_spread_", namespace))

	m.show(web, plan.Numbers{Subsets: []plan.SubsetNumbers{{Name: "c", Limit: subsets.Unlimited}}})
	assert.Equal(t, []string{
		"pods_without_subset[web]=0", "subset_closed[c web]=0", "subset_pods[active c web]=0", "subset_pods[coming c web]=0",
		"unplaced_pods_total[NoRoom web]=1",
	}, series.Of(t, "flotilla_spread_", namespace), "the list has changed")
	m.Forget(web)
	assert.Equal(t, []string{"unplaced_pods_total[NoRoom web]=1"}, series.Of(t, "flotilla_spread_", namespace))
}
