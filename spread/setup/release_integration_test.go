package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
)

// spreadWithCosts creates a ReplicaSet with a pod in zone a that has a cost of its user's, a pod in no zone, a WorkloadSpread
// and one more pod, and waits for their costs.
func spreadWithCosts(t *testing.T, c client.Client, namespace string) *v1beta1.WorkloadSpread {
	t.Helper()
	for _, zone := range []string{"a", "z"} {
		givenNode(t, c, namespace, zone)
	}
	owner := newReplicaSet(namespace, 3)
	require.NoError(t, c.Create(t.Context(), owner))
	for _, zone := range []string{"a", "z"} {
		pod := podOf(owner)
		pod.Spec.NodeName = namespace + "-" + zone
		if zone == "a" {
			pod.Annotations = map[string]string{contract.PodDeletionCostAnnotation: "7"}
		}
		require.NoError(t, c.Create(t.Context(), pod))
	}
	s := newSpread(namespace, intstr.FromInt32(2))
	require.NoError(t, c.Create(t.Context(), s))
	awaitCosts(t, c, namespace, map[string]int{"a 200": 1, " -300": 1})
	assert.Equal(t, map[string]int{"a": 1}, create(t, c, owner, 1))
	return s
}

func awaitCosts(t *testing.T, c client.Client, namespace string, want map[string]int) {
	t.Helper()
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, want, costs(t.Context(), check, c, namespace)) })
}

// With their WorkloadSpread pods lose the deletion costs that it gave them, and get back those of users. One of the same name
// goes on with its pods, until its filter selects them no more.
func TestCostsEndWithTheirSpread(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	s := spreadWithCosts(t, c, namespace)
	require.NoError(t, c.Delete(t.Context(), s))
	awaitCosts(t, c, namespace, map[string]int{"a 7": 1, "a ": 1, " ": 1})

	s = newSpread(namespace, intstr.FromInt32(2))
	require.NoError(t, c.Create(t.Context(), s))
	awaitCosts(t, c, namespace, map[string]int{"a 200": 2, " -300": 1})
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		s.Spec.TargetFilter = &v1beta1.TargetFilter{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}}
		require.NoError(check, c.Update(t.Context(), s))
	})
	awaitCosts(t, c, namespace, map[string]int{"a 7": 1, "a ": 1, " ": 1})
}

// A WorkloadSpread may be deleted while no operator runs.
func TestCostsOfASpreadThatWentUnseenEnd(t *testing.T) {
	env.Need(t)
	namespace := env.Namespace(t)
	var s *v1beta1.WorkloadSpread
	t.Run("it has costs", func(t *testing.T) { s = spreadWithCosts(t, serve(t), namespace) })
	require.NoError(t, env.Client(t).Delete(t.Context(), s))
	t.Run("it is gone", func(t *testing.T) {
		awaitCosts(t, serve(t), namespace, map[string]int{"a 7": 1, "a ": 1, " ": 1})
	})
}
