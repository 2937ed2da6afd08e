package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
)

// Each test here is something that users of OpenKruise ran into, as those in regression_test.go.

// 1442: a rollout had less and less surge as it went on, and the last pods went one by one.
func TestSurgeIsFullUntilTheLastPods(t *testing.T) {
	for old := 1; old <= 10; old++ {
		t.Run(fmt.Sprintf("%d old pods", old), func(t *testing.T) {
			w := given(t, 10, maxSurge("3"), maxUnavailable("0")).old(old).updated(10 - old)
			require.Equal(t, outcome{createNew: min(3, old)}, w.outcome())
		})
	}
}

// 370, 467: who waited for a rollout with a partition waited for ever.
func TestASetAtItsPartitionIsReady(t *testing.T) {
	ready := func(w *world) corev1.ConditionStatus {
		c := conditions.Get(w.status(action.Failures{}).Conditions, conditions.Ready)
		require.NotNil(t, c)
		return c.Status
	}
	assert.Equal(t, corev1.ConditionTrue, ready(given(t, 3, partition("2")).old(2).updated(1)))
	assert.Equal(t, corev1.ConditionFalse, ready(given(t, 3, partition("1")).old(2).updated(1)))
}
