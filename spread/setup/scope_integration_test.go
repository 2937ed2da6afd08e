package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/spread/internal/featuregates"
)

// Of pods beside no WorkloadSpread nothing is cached. Those of a namespace that gets its first one are, with those that it
// had before.
func TestPodsOfOtherNamespacesAreNotCached(t *testing.T) {
	const limit, pods = 3, 5
	s, environment := answering(t, features.Defaults(featuregates.All()...))
	require.NoError(t, s.setup(t.Context(), environment))
	env.Start(t, environment.Manager)
	c, cached := env.Client(t), environment.Manager.GetCache()
	spreading, other := env.Namespace(t), env.Namespace(t)
	owner, foreign := newReplicaSet(spreading, pods), newReplicaSet(other, pods)
	for _, o := range []client.Object{owner, foreign} {
		require.NoError(t, c.Create(t.Context(), o))
	}
	for range limit {
		require.NoError(t, c.Create(t.Context(), podOf(owner)))
		require.NoError(t, c.Create(t.Context(), podOf(foreign)))
	}
	env.ConvertHere(t, "workloadspreads.apps.kruise.io", oldSpread("default", "probe"))
	spread := newSpread(spreading, intstr.FromInt32(limit))
	require.NoError(t, c.Create(t.Context(), spread))
	settled(t, c, spread, "0/3 0/-1") // its older pods run on no node yet
	assert.Equal(t, map[string]int{"a": limit, "b": pods - limit}, create(t, c, owner, pods))
	settled(t, c, spread, "3/0 2/-1")
	require.NoError(t, c.Create(t.Context(), podOf(foreign)))
	await.Until(t, func(check *assert.CollectT) {
		found := &corev1.PodList{}
		require.NoError(check, cached.List(t.Context(), found))
		namespaces := map[string]int{}
		for i := range found.Items {
			namespaces[found.Items[i].Namespace]++
		}
		assert.Equal(check, map[string]int{spreading: limit + pods}, namespaces)
	})
}
