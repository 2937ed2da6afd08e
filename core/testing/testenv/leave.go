package testenv

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leave deletes an object and keeps its pods and revisions, as kubectl delete --cascade=orphan does. It removes the
// owner references itself, because the environment has no garbage collector.
func Leave(t testing.TB, c client.Client, owner client.Object) {
	t.Helper()
	require.NoError(t, c.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.ControllerRevisionList{}} {
		require.NoError(t, c.List(t.Context(), list, client.InNamespace(owner.GetNamespace())))
		require.NoError(t, meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			before := o.DeepCopyObject().(client.Object)
			o.SetOwnerReferences(slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() }))
			return c.Patch(t.Context(), o, client.MergeFrom(before))
		}))
	}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(owner), owner))
	before := owner.DeepCopyObject().(client.Object)
	owner.SetFinalizers(slices.DeleteFunc(owner.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerOrphanDependents }))
	require.NoError(t, c.Patch(t.Context(), owner, client.MergeFrom(before)))
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(owner), owner)))
}
