package setup

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"

	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
	"github.com/flotilla-project/flotilla/core/testing/await"
)

// manage runs the controllers of one more manager until the test ends, as one that has lost its Lease and does not know yet.
func manage(t *testing.T) {
	t.Helper()
	s, environment := replica(t, env, "", features.Defaults(featuregates.All()...))
	require.NoError(t, s.setup(t.Context(), environment))
	env.Start(t, environment.Manager)
}

// Two managers that both count write over no grant, end with the same numbers, and do not write against each other.
func TestTwoManagersCountTheSame(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 3)
	manage(t)
	audit := env.AuditOf(t, a.namespace)
	b := a.budget(t)
	gone := a.pods[0]
	require.NoError(t, a.evict(t, gone))
	for _, other := range a.pods[1:] {
		assert.EqualValues(t, http.StatusTooManyRequests, status(t, a.evict(t, other)).Code)
	}
	require.NoError(t, a.Delete(t.Context(), gone.DeepCopy(), client.GracePeriodSeconds(0)))
	a.addPod(t)
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{3, 2, 3, 1}, a.numbers(check, b))
		assert.Empty(check, b.Status.DisruptedPods)
	})
	a.guarded(t, a.pods[3])
	require.NoError(t, a.evict(t, a.pods[3]))
	for write, n := range audit.Writes(t, "") {
		assert.LessOrEqual(t, n, 20, write)
	}
}
