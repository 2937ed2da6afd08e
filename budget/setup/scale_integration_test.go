package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/testenv"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
)

// givenFleet makes a workload of another operator, which says which pods it has.
func givenFleet(t *testing.T, a *app, replicas int64) *unstructured.Unstructured {
	t.Helper()
	fleet := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	fleet.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"})
	fleet.SetNamespace(a.namespace)
	fleet.SetName("fleet")
	require.NoError(t, a.Create(t.Context(), fleet))
	fleet.Object["status"] = map[string]any{"labelSelector": "app=web"}
	require.NoError(t, a.Status().Update(t.Context(), fleet))
	return fleet
}

// A workload that owns no pods has those that its scale selects, and once it owns some these alone.
func TestAScaleSelectsThePodsOfATarget(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults()), 0)
	fleet := givenFleet(t, a, 2)
	free := func(pod *corev1.Pod) { pod.OwnerReferences = nil }
	a.addPod(t, free)
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "example.com/v1", Kind: "Fleet", Name: "fleet"}
	})
	assert.Equal(t, [4]int32{2, 1, 1, 0}, a.numbers(t, b))
	other := a.addPod(t) // of the Deployment
	require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	assert.Equal(t, "web", cover.Mark(other), "it is marked when it is made")
	testenv.Eventually(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{2, 1, 2, 1}, a.numbers(check, b)) })
	testenv.Eventually(t, func(check *assert.CollectT) { // the webhook's cache shows it, too
		assert.NoError(check, a.patch(t, a.pods[0], newImage))
	})
	require.ErrorContains(t, a.patch(t, other, newImage), "1 available, 1 required of 2")
	require.ErrorContains(t, a.evict(t, other), "1 available, 1 required of 2")
	stranger := a.addPod(t, free, func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "api"} })
	require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger))
	assert.Empty(t, cover.Mark(stranger))
	require.NoError(t, a.patch(t, stranger, newImage))

	owned := a.addPod(t, func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(fleet, fleet.GroupVersionKind())}
	})
	testenv.Eventually(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{2, 1, 1, 0}, a.numbers(check, b))
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(other), other))
		assert.Empty(check, cover.Mark(other), "the mark goes with the cover")
	})
	require.ErrorContains(t, a.patch(t, owned, newImage), "1 available, 1 required of 2")
	testenv.Eventually(t, func(check *assert.CollectT) { assert.NoError(check, a.patch(t, other, newImage)) })
}
