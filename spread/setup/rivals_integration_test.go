package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/spread/api/v1beta1"
	"github.com/flotilla-project/flotilla/spread/internal/subsets"
)

// A Deployment and its ReplicaSet may be spread by two. The pods belong to the older one; the other says so, does nothing,
// and takes over once it is alone.
func TestOfTwoSpreadsTheOlderHasThePods(t *testing.T) {
	c := serve(t)
	namespace := env.Namespace(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template().Labels}, Template: template(),
	}}
	require.NoError(t, c.Create(t.Context(), deployment))
	owner := newReplicaSet(namespace, 2)
	owner.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	require.NoError(t, c.Create(t.Context(), owner))
	one, two := newSpread(namespace, intstr.FromInt32(5)), newSpread(namespace, intstr.FromInt32(5))
	one.Name, two.Name, two.Spec.TargetReference.Kind = "one", "two", "Deployment"
	require.NoError(t, c.Create(t.Context(), one))
	require.NoError(t, c.Create(t.Context(), two))
	older, younger := one, two // within a second their UIDs decide
	if subsets.Precedes(two, one) {
		older, younger = two, one
	}
	pods := func(check require.TestingT, of string) (n int) {
		for _, pod := range podsOf(t, c, namespace) {
			match, _ := subsets.MatchOf(&pod)
			assert.Equal(check, of, match.Name)
			n++
		}
		return n
	}
	await.Until(t, func(check *assert.CollectT) { // caches may lack one of them
		require.NoError(check, c.Create(t.Context(), podOf(owner)))
		match, _ := subsets.MatchOf(&podsOf(t, c, namespace)[0])
		assert.Equal(check, older.Name, match.Name)
	})
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(younger), younger))
		condition := meta.FindStatusCondition(younger.Status.Conditions, v1beta1.Overlapped)
		require.NotNil(check, condition)
		assert.Contains(check, condition.Message, "belong to WorkloadSpread "+older.Name)
		assert.Equal(check, "a 0/5, b 0", younger.Status.Distribution)
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(older), older))
		assert.Nil(check, meta.FindStatusCondition(older.Status.Conditions, v1beta1.Overlapped))
		pods(check, older.Name)
	})
	require.NoError(t, c.Delete(t.Context(), older))
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(younger), younger))
		assert.Nil(check, meta.FindStatusCondition(younger.Status.Conditions, v1beta1.Overlapped))
	})
}
