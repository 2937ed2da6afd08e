package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/cover"
	"github.com/flotilla-project/flotilla/budget/internal/disruption"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

// givenFleet makes a workload of another operator, which says which pods it has unless the selector is empty.
func givenFleet(t testing.TB, a *app, replicas int64, selector string) *unstructured.Unstructured {
	t.Helper()
	fleet := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	fleet.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"})
	fleet.SetNamespace(a.namespace)
	fleet.SetName("fleet")
	require.NoError(t, a.Create(t.Context(), fleet))
	if selector != "" {
		a.publish(t, fleet, selector)
	}
	return fleet
}

// publish has the status of the workload say which pods it has.
func (a *app) publish(t testing.TB, fleet *unstructured.Unstructured, selector string) {
	t.Helper()
	fleet.Object["status"] = map[string]any{"labelSelector": selector}
	require.NoError(t, a.Status().Update(t.Context(), fleet))
}

// ofFleet has a budget cover the pods of the fleet.
func ofFleet(b *v1beta1.PodUnavailableBudget) {
	b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "example.com/v1", Kind: "Fleet", Name: "fleet"}
}

// A workload that owns no pods has those that its scale selects, and once it owns some these alone.
func TestAScaleSelectsThePodsOfATarget(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 0)
	fleet := givenFleet(t, a, 2, "app=web")
	free := func(pod *corev1.Pod) { pod.OwnerReferences = nil }
	a.addPod(t, free)
	b := a.budget(t, ofFleet)
	assert.Equal(t, [4]int32{2, 1, 1, 0}, a.numbers(t, b))
	other := a.addPod(t) // of the Deployment
	require.NoError(t, a.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	assert.Equal(t, "web", cover.Mark(other), "it is marked when it is made")
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{2, 1, 2, 1}, a.numbers(check, b)) })
	await.Until(t, func(check *assert.CollectT) { // the webhook's cache shows it, too
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
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{2, 1, 1, 0}, a.numbers(check, b))
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(other), other))
		assert.Empty(check, cover.Mark(other), "the mark goes with the cover")
	})
	require.ErrorContains(t, a.patch(t, owned, newImage), "1 available, 1 required of 2")
	await.Until(t, func(check *assert.CollectT) { assert.NoError(check, a.patch(t, other, newImage)) })
}

// What a workload says of its pods after the budget was made, or in another way than before, is seen in seconds.
func TestAScaleMaySelectLate(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 0)
	fleet := givenFleet(t, a, 2, "")
	web := a.addPod(t, func(pod *corev1.Pod) { pod.OwnerReferences = nil })
	api := a.addPod(t, func(pod *corev1.Pod) { pod.OwnerReferences, pod.Labels = nil, map[string]string{"app": "api"} })
	b := newBudget(a.namespace)
	ofFleet(b)
	require.NoError(t, a.Create(t.Context(), b))
	covers := func(pod *corev1.Pod, covered int32) {
		await.Until(t, func(check *assert.CollectT) {
			assert.Equal(check, [4]int32{2, 1, covered, 0}, a.numbers(check, b))
			assert.Equal(check, b.Generation, b.Status.ObservedGeneration)
			for _, o := range []*corev1.Pod{web, api} {
				require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(o), o))
				assert.Equal(check, o == pod, cover.Mark(o) == b.Name, o.Name)
			}
		})
	}
	covers(nil, 0)
	a.publish(t, fleet, "app=web")
	covers(web, 1)
	a.publish(t, fleet, "app=api")
	covers(api, 1)
}

// The API server answers with 500 for the scale of an object without spec.replicas. That is its own budget's affair.
func TestAScaleThatCannotBeReadHarmsNobodyElse(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 2)
	fleet := givenFleet(t, a, 2, "")
	without := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/replicas"}]`))
	require.NoError(t, a.Patch(t.Context(), fleet, without))
	of := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(fleet, fleet.GroupVersionKind())}
	}
	b := newBudget(a.namespace)
	ofFleet(b)
	b.Name = "fleet"
	require.NoError(t, a.Create(t.Context(), b))
	a.budget(t)
	first, second := a.addPod(t, of), a.addPod(t, of)
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{2, 1, 2, 1}, a.numbers(check, b), "its present pods count")
		c := meta.FindStatusCondition(b.Status.Conditions, disruption.ConditionReplicasUnknown)
		require.NotNil(check, c)
		assert.Equal(check, disruption.ReasonUnreadable, c.Reason)
	})
	require.NoError(t, a.evict(t, first))
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{2, 1, 1, 0}, a.numbers(check, b), "the pod that terminates is present")
		assert.Empty(check, b.Status.DisruptedPods, "the pod was seen to terminate")
	})
	require.ErrorContains(t, a.evict(t, second), "PodUnavailableBudget "+a.namespace+"/fleet refuses EVICT")
	require.NoError(t, a.evict(t, a.pods[0]))
	require.ErrorContains(t, a.evict(t, a.pods[1]), "PodUnavailableBudget "+a.namespace+"/web refuses EVICT")
}

// While a pod terminates its workload still wants another one in its place, also where it was the only one.
func TestAWorkloadWhoseLastPodTerminatesStillCounts(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 1)
	fleet := givenFleet(t, a, 1, "")
	only := a.addPod(t, func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(fleet, fleet.GroupVersionKind())}
	})
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.TargetReference, b.Spec.Selector = nil, &metav1.LabelSelector{MatchLabels: labels}
	})
	assert.Equal(t, [4]int32{2, 1, 2, 1}, a.numbers(t, b))
	require.NoError(t, a.evict(t, only))
	await.Until(t, func(check *assert.CollectT) {
		assert.Equal(check, [4]int32{2, 1, 1, 0}, a.numbers(check, b))
		assert.Empty(check, b.Status.DisruptedPods, "the pod was seen to terminate")
	})
	require.ErrorContains(t, a.evict(t, a.pods[0]), "1 available, 1 required of 2")
}

// The condition names the same budget and pod in each pass: others would be a write each time.
func TestAConflictIsToldOnce(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 8)
	b := a.budget(t)
	for _, name := range []string{"late", "early"} {
		other := newBudget(a.namespace)
		other.Name, other.Spec.TargetReference, other.Spec.Selector = name, nil, &metav1.LabelSelector{MatchLabels: labels}
		if name == "early" {
			other.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "none", Operator: metav1.LabelSelectorOpDoesNotExist}}
		}
		require.NoError(t, a.Create(t.Context(), other))
	}
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, a.Get(t.Context(), client.ObjectKeyFromObject(b), b))
		conflict := meta.FindStatusCondition(b.Status.Conditions, disruption.ConditionConflict)
		require.NotNil(check, conflict)
		assert.Contains(check, conflict.Message, "PodUnavailableBudget early also covers pod web-0")
	})
}
