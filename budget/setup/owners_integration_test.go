package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/budget/api/v1beta1"
	"github.com/flotilla-project/flotilla/budget/internal/featuregates"
)

// givenSet makes a StatefulSet, and returns what has a pod belong to it.
func (a *app) givenSet(t *testing.T, name string, replicas int32) (*appsv1.StatefulSet, func(*corev1.Pod)) {
	t.Helper()
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec()}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name}}
	set.Spec = appsv1.StatefulSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}
	require.NoError(t, a.Create(t.Context(), set))
	return set, func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	}
}

func ofSet(b *v1beta1.PodUnavailableBudget) {
	b.Spec.TargetReference = &v1beta1.TargetReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web"}
}

// Whoever creates a workload anew under its name needs the names of the pods that it had: nothing holds them.
func TestPodsOfAFormerWorkloadAreFree(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.PodUnavailableBudget){
		"of its name":                     ofSet,
		"of its name, with a fixed total": func(b *v1beta1.PodUnavailableBudget) { ofSet(b); b.Spec.ProtectTotalReplicas = new(int32(2)) },
		"with its labels": func(b *v1beta1.PodUnavailableBudget) {
			b.Spec.TargetReference, b.Spec.Selector = nil, &metav1.LabelSelector{MatchLabels: labels}
		},
	} {
		for _, again := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 0)
				set, of := a.givenSet(t, "web", 2)
				a.addPod(t, of)
				a.addPod(t, of)
				a.budget(t, change, func(b *v1beta1.PodUnavailableBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(0)) })
				require.ErrorContains(t, a.Delete(t.Context(), a.pods[0].DeepCopy()), "refuses DELETE")
				require.NoError(t, a.Delete(t.Context(), set, client.PropagationPolicy(metav1.DeletePropagationBackground)))
				if again {
					a.givenSet(t, "web", 2)
				}
				for _, pod := range a.pods {
					await.Until(t, func(check *assert.CollectT) {
						assert.NoError(check, client.IgnoreNotFound(a.Delete(t.Context(), pod.DeepCopy(), client.GracePeriodSeconds(0))))
					})
				}
			})
		}
	}
}

// A minimum over two workloads does not hold the pods of one that is deleted, also while the other has no more than the minimum.
func TestPodsOfAWorkloadThatGoesDoNotCount(t *testing.T) {
	a := givenApp(t, serve(t, features.Defaults(featuregates.All()...)), 0)
	_, stays := a.givenSet(t, "web", 2)
	other, goes := a.givenSet(t, "other", 2)
	for _, of := range []func(*corev1.Pod){stays, stays, goes, goes} {
		a.addPod(t, of)
	}
	b := a.budget(t, func(b *v1beta1.PodUnavailableBudget) {
		b.Spec.TargetReference, b.Spec.Selector = nil, &metav1.LabelSelector{MatchLabels: labels}
		b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, new(intstr.FromInt32(3))
	})
	assert.Equal(t, [4]int32{4, 3, 4, 1}, a.numbers(t, b))
	// The collector of garbage, which does not run here, would delete the pods first.
	require.NoError(t, a.Delete(t.Context(), other, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	for _, pod := range a.pods[2:] {
		await.Until(t, func(check *assert.CollectT) { assert.NoError(check, a.Delete(t.Context(), pod.DeepCopy())) })
	}
	await.Until(t, func(check *assert.CollectT) { assert.Equal(check, [4]int32{2, 3, 2, 0}, a.numbers(check, b)) })
	require.ErrorContains(t, a.Delete(t.Context(), a.pods[0].DeepCopy()), "refuses DELETE")
}
