package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
)

// After a takeover from OpenKruise objects are stored as v1alpha1: the operator reads back all that it has written.
func TestSpreadsAreStoredAsV1alpha1(t *testing.T) {
	c := serve(t)
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("workloadspreads.apps.kruise.io")
	require.NoError(t, c.Patch(t.Context(), crd, client.RawPatch("application/json-patch+json", []byte(
		`[{"op": "test", "path": "/spec/versions/0/name", "value": "v1alpha1"}, {"op": "replace", "path": "/spec/versions/0/storage", "value": true},
		{"op": "replace", "path": "/spec/versions/1/storage", "value": false}]`))))
	namespace := env.Namespace(t)
	kind := metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}
	require.NoError(t, c.Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(2)), Template: template(), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}))
	s := newSpread(namespace, intstr.FromInt32(1))
	require.NoError(t, c.Create(t.Context(), s))
	defer func() { require.NoError(t, c.Delete(t.Context(), s)) }() // while the operator converts it
	set := &appsv1.ReplicaSet{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, set))
	for _, want := range []string{"a", "b"} {
		pod := newPod(set, kind, "", map[string]string{"app": "web"})
		require.NoError(t, c.Create(t.Context(), pod))
		assert.Equal(t, want, subsetOf(pod))
	}
	settled(t, c, s, "1/0 1/-1")
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		require.NotEmpty(check, s.Status.Conditions)
		for _, condition := range s.Status.Conditions {
			assert.Equal(check, s.Generation, condition.ObservedGeneration, condition.Type)
		}
	})
}
