package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/config"
)

// The manager is refused nothing while it counts for a budget, marks its pods, and takes the marks away.
func TestTheShippedRolesAreEnough(t *testing.T) {
	env.Need(t)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files, Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml"},
	}.Start(t)
	answerWebhooks(t)
	a := givenApp(t, env.Client(t), 2)
	b := newBudget(a.namespace)
	require.NoError(t, a.Create(t.Context(), b))
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{2, 1, 2, 1}, a.numbers(check, b))
		for _, pod := range a.pods {
			require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			assert.Equal(check, b.Name, pod.Annotations[v1beta1.RelatedAnnotation])
		}
	})
	require.NoError(t, a.Delete(t.Context(), b))
	await.Until(t, func(check *assert.CollectT) {
		ns := &corev1.Namespace{}
		require.NoError(check, a.Get(t.Context(), client.ObjectKey{Name: a.namespace}, ns))
		assert.NotContains(check, ns.Labels, v1beta1.NamespaceLabel)
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(a.pods[0]), a.pods[0]))
		assert.NotContains(check, a.pods[0].Annotations, v1beta1.RelatedAnnotation)
	})
	assertAllowed()
}
