package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/plan/action"
	"github.com/flotilla-project/flotilla/core/testing/gen"

	"github.com/flotilla-project/flotilla/cloneset/api/v1beta1"
)

func TestScale(t *testing.T) {
	doomed := gen.SpecifiedDelete()
	tests := []struct {
		name string
		give *world
		want outcome
	}{
		{"from nothing all pods have the update revision", given(t, 5), outcome{createNew: 5}},
		{"a partition keeps new pods at the current revision", given(t, 5, partition("3")), outcome{createOld: 3, createNew: 2}},
		{"scaling out in a partitioned rollout adds updated pods", given(t, 8, partition("3")).old(3).updated(2), outcome{createNew: 3}},
		{"scaling out is limited by scaleStrategy.maxUnavailable", given(t, 5, scaleUnavailable("2")), outcome{createNew: 2}},
		{"unavailable pods count against that limit", given(t, 6, scaleUnavailable("2")).updated(2).updated(1, unready), outcome{createNew: 1}},
		{"paused does not stop scaling", given(t, 3, paused()).old(2), outcome{createNew: 1}},

		{"too many pods are deleted", given(t, 3).updated(5), outcome{deleteNew: 2}},
		{"an absolute partition keeps old pods", given(t, 3, partition("3")).old(3).updated(2), outcome{deleteNew: 2}},
		{"a relative partition shrinks both groups", given(t, 6, partition("60%")).old(6).updated(4), outcome{deleteOld: 2, deleteNew: 2}},
		{"unavailable pods go before available ones", given(t, 2).updated(2).updated(1, unready), outcome{deleteNew: 1}},
		{"ready pods wait until others are available", given(t, 3, minReady(600)).updated(5, gen.Ready(now)), outcome{}},

		{"a specified pod is deleted first and replaced later", given(t, 5).updated(4).updated(1, doomed), outcome{deleteNew: 1}},
		{"specified pods respect maxUnavailable", given(t, 5).updated(3).updated(2, doomed), outcome{deleteNew: 1}},
		{"specified pods out of service go at once", given(t, 5).updated(3).updated(2, doomed, unready), outcome{deleteNew: 2}},
		{"and are not forgotten in the count of those unavailable", given(t, 5).updated(3).updated(1, doomed).updated(1, doomed, unready), outcome{deleteNew: 1}},
		{"a pod that is released is not available any more", given(t, 3).updated(1).updated(1, doomed).updated(1, gen.Label("app", "other")), outcome{}},
		{"with surge the replacement comes first", given(t, 5, maxUnavailable("0"), maxSurge("1")).updated(4).updated(1, doomed), outcome{createNew: 1}},
		{"then the specified pod goes", given(t, 5, maxUnavailable("0"), maxSurge("1")).updated(5).updated(1, doomed), outcome{deleteNew: 1}},
		{"but not before the replacement is available", given(t, 5, maxUnavailable("0"), maxSurge("1")).updated(4).updated(1, unready).updated(1, doomed), outcome{}},
		{"named with fewer replicas, exactly that pod goes", given(t, 4, named("web-new2")).updated(5), outcome{deleteNew: 1}},

		{"a failed pod is replaced and left", given(t, 2).updated(1).updated(1, gen.Phase("Failed")), outcome{createNew: 1}},
		{"a terminating pod is replaced", given(t, 2).updated(1).updated(1, gen.Terminating()), outcome{createNew: 1}},
		{"a pod in PreparingDelete still counts", given(t, 3, hooked()).updated(2).updated(1, held...), outcome{}},
		{"unless it is excluded", given(t, 3, hooked(), excluding()).updated(2).updated(1, append(held, doomed)...), outcome{createNew: 1}},
		{"a released hook deletes", given(t, 2, hooked()).updated(2).updated(1, gen.Lifecycle(contract.LifecyclePreparingDelete)), outcome{deleteNew: 1}},

		{"OnDelete replaces what users delete with updated pods", given(t, 5, onDeleteOnly()).old(3), outcome{createNew: 2}},
		{"OnDelete scales in old pods first", given(t, 3, onDeleteOnly()).old(3).updated(2), outcome{deleteOld: 2}},
		{"OnDelete updates nothing", given(t, 5, onDeleteOnly()).old(5), outcome{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.give.t = t
			require.Equal(t, tt.want, tt.give.outcome())
		})
	}
}

// The largest numbers that the fields take mean no limit.
func TestTheLargestNumbersAreNoLimit(t *testing.T) {
	const most = "2147483647"
	require.Equal(t, outcome{deleteNew: 2}, given(t, 3, maxUnavailable(most)).updated(5).outcome())
	require.Equal(t, outcome{deleteOld: 4}, given(t, 5, maxUnavailable(most), maxSurge("1")).old(5).updated(1).outcome())
	require.Equal(t, outcome{createNew: 4}, given(t, 4, maxUnavailable("0"), maxSurge(most)).old(4).outcome())
}

func TestASpecifiedPodOfAPausedSetIsToldOfTheSurge(t *testing.T) {
	w := given(t, 3, maxUnavailable("0"), maxSurge("1"), paused(), named("web-new0")).updated(3)
	require.Contains(t, w.plan().Waits[0].Message, "maxSurge has no effect while the update is paused")
}

// With feature gate PreparingUpdateAsUpdate pods in PreparingUpdate are counted and chosen as updated ones: the
// pod that is out of service goes, not the one that serves in its stead.
func TestScalingInChoosesAsItCounts(t *testing.T) {
	w := given(t, 2, partition("1"), policy(v1beta1.InPlaceIfPossible)).old(1).old(1, gen.Lifecycle(contract.LifecyclePreparingUpdate)).updated(1)
	require.Contains(t, w.plan().String(), "Delete pod web-old1")
	w.featureGates.PreparingUpdateAsUpdate = true
	require.Contains(t, w.plan().String(), "Delete pod web-old1")
}

// A plan creates no more pods than a pass has time for, and says that there are more.
func TestAPlanCreatesOnlySomeOfManyPods(t *testing.T) {
	for replicas, more := range map[int32]bool{action.MaxCreates: false, action.MaxCreates + 1: true, 2_000_000_000: true} {
		todo := Compute(given(t, replicas).snapshot())
		require.Equal(t, action.MaxCreates, todo.Count(action.Create))
		last := todo.Steps[len(todo.Steps)-1]
		assert.Equal(t, stepScale, last.Name)
		assert.Equal(t, more, last.More, "%d replicas", replicas)
	}
}
