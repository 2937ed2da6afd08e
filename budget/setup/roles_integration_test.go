package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/config"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
)

// The manager is refused nothing while it counts for a budget, marks its pods, and takes the marks away.
func TestTheShippedRolesAreEnough(t *testing.T) {
	env.Need(t)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files, Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "policy/*.yaml"},
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

// Of a kind that no shipped role names the manager finds pods and replicas by the scale subresource. Where there is none it
// says that it protects nothing.
func TestWorkloadsOfOtherOperatorsNeedNoFurtherRoles(t *testing.T) {
	env.Need(t)
	operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files, Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "policy/*.yaml"},
	}.Start(t)
	answerWebhooks(t)
	a := givenApp(t, env.Client(t), 0)
	fleet := givenFleet(t, a, 2, "app=web")
	for range 2 {
		a.addPod(t, func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(fleet, fleet.GroupVersionKind())}
		})
	}
	b := a.budget(t, ofFleet)
	assert.Equal(t, [4]int32{2, 1, 2, 1}, a.numbers(t, b))
	assert.Nil(t, meta.FindStatusCondition(b.Status.Conditions, disruption.ConditionReplicasUnknown))
	require.NoError(t, a.evict(t, a.pods[0]))
	require.ErrorContains(t, a.evict(t, a.pods[1]), "1 available, 1 required of 2")

	of := newBudget(a.namespace)
	of.Name, of.Spec.TargetReference = "crew", &v1beta1.TargetReference{APIVersion: "example.com/v1", Kind: "Crew", Name: "crew"}
	require.NoError(t, a.Create(t.Context(), of))
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(of), of))
		c := meta.FindStatusCondition(of.Status.Conditions, disruption.ConditionReplicasUnknown)
		require.NotNil(check, c)
		assert.Equal(check, disruption.ReasonForbidden, c.Reason)
		assert.Contains(check, c.Message, "the budget has no effect")
	})
}
