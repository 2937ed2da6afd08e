package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/gen"
)

// Opening the gates of thousands of new pods takes no more than half of a pass from what is created and deleted.
func TestReadinessGatesAreOpenedApart(t *testing.T) {
	unopened := gen.Change(func(o *corev1.Pod) { o.Status.Conditions = o.Status.Conditions[:0] })
	w := given(t, 2, inPlace).updated("n1", gen.ReadinessGate(contract.KruisePodReady), unopened)
	steps := w.plan().Steps
	require.Len(t, steps, 2)
	assert.Equal(t, []string{stepRefresh, stepCreate}, []string{steps[0].Name, steps[1].Name})
	assert.True(t, steps[0].Apart)
}
