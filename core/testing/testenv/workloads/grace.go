package workloads

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/api/workload"
	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/pods/podstate"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/workloads/conditions"
)

// Grace is a set of one pod, whose in-place updates have a grace period of some seconds.
type Grace[T client.Object] struct {
	// Env is the environment, with the operator and nodes that run pods.
	Env *testenv.Environment
	// Set is the set, not yet created, with image app:1.
	Set T
	// Update changes the image to app:2, and Spoil a number to one that cannot be parsed.
	Update, Spoil func(T)
	// Conditions are those of the set.
	Conditions func(T) []workload.Condition
}

// TestSpoiled makes the spec invalid while the pod is in its grace period. The pod, which is out of service, still gets
// its image at the end of the grace period.
func (g Grace[T]) TestSpoiled(t *testing.T) {
	t.Helper()
	c := g.Env.Client(t)
	pod := func(collect require.TestingT) corev1.Pod {
		var pods corev1.PodList
		require.NoError(collect, c.List(t.Context(), &pods, client.InNamespace(g.Set.GetNamespace())))
		require.Len(collect, pods.Items, 1)
		return pods.Items[0]
	}
	inService := func(collect *assert.CollectT) corev1.ConditionStatus {
		o := pod(collect)
		ready := podstate.Condition(&o, contract.InPlaceUpdateReady)
		require.NotNil(collect, ready)
		return ready.Status
	}
	require.NoError(t, c.Create(t.Context(), g.Set))
	await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, corev1.ConditionTrue, inService(collect)) })
	testenv.Edit(t, c, g.Set, g.Update)
	await.Until(t, func(collect *assert.CollectT) { assert.Equal(collect, corev1.ConditionFalse, inService(collect)) })
	testenv.Edit(t, c, g.Set, g.Spoil)
	await.Until(t, func(collect *assert.CollectT) {
		require.NoError(collect, c.Get(t.Context(), client.ObjectKeyFromObject(g.Set), g.Set))
		stalled := conditions.Get(g.Conditions(g.Set), conditions.Stalled)
		require.NotNil(collect, stalled)
		assert.Equal(collect, corev1.ConditionTrue, stalled.Status)
	})
	require.Equal(t, "app:1", pod(t).Spec.Containers[0].Image, "the grace period is over too early for this test")
	await.Until(t, func(collect *assert.CollectT) {
		assert.Equal(collect, "app:2", pod(collect).Spec.Containers[0].Image)
	})
}
