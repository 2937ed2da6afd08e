package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/faults"

	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/marks"
)

// A server that does not answer for a while is no failure of each pod: its owners are asked for again now and then, and
// the pods get their marks.
func TestASilentServerFailsNoPod(t *testing.T) {
	env.Need(t)
	over, held := faults.Hold(env, "/replicasets")
	before := failures(t)
	a := givenApp(t, servedBy(t, 1, over), 4)
	b := newBudget(a.namespace)
	require.NoError(t, a.Create(t.Context(), b))
	for range 3 {
		<-held.Asked
	}
	assert.InDelta(t, before, failures(t), 0)
	held.Release()
	await.Until(t, func(check *assert.CollectT) {
		for _, pod := range a.pods {
			require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			assert.Equal(check, b.Name, cover.Mark(pod))
		}
	})
	assert.InDelta(t, before, failures(t), 0)
}

// failures returns how many passes over pods have failed in this process.
func failures(t *testing.T) (n float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_errors_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == marks.PodController {
					n += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}
