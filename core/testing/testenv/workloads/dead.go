package workloads

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestDeadOperator tests what users can do while no operator answers. A request that creates or changes a workload
// fails with an error that names the webhook. All other requests succeed: running workloads are scaled and deleted, and
// their status is written. serve answers the webhooks until its test ends.
func (w Webhooks) TestDeadOperator(t *testing.T, serve func(*testing.T) client.Client) {
	t.Helper()
	namespace := w.Env.Namespace(t)
	members := "replicas: 1"
	if w.Unscaled {
		members = ""
	}
	running := w.Sent(t, "v1beta1", members)
	t.Run("before its death", func(t *testing.T) { Create(t, serve(t), namespace, running) })
	c := w.Env.Client(t)
	patch := func(body string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(body)) }

	another := w.Sent(t, "v1beta1", "")
	another.SetNamespace(namespace)
	another.SetName("another")
	for what, err := range map[string]error{
		"create": c.Create(t.Context(), another),
		"change": c.Patch(t.Context(), running.DeepCopy(), patch(`{"spec":{"template":{"metadata":{"labels":{"more":"x"}}}}}`)),
	} {
		assert.True(t, apierrors.IsInternalError(err), what)
		require.ErrorContains(t, err, `failed calling webhook "m`+strings.ToLower(w.Kind)+`.kb.io"`, what)
	}
	assert.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(another), another)))

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            "web-0",
			Namespace:       namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(running, running.GroupVersionKind())},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
	require.NoError(t, c.Create(t.Context(), pod))
	require.NoError(t, c.Patch(t.Context(), pod, patch(`{"metadata":{"labels":{"more":"x"}}}`)))
	require.NoError(t, c.Delete(t.Context(), pod))

	require.NoError(t, c.Status().Patch(t.Context(), running.DeepCopy(), patch(`{"status":{"observedGeneration":1}}`)))
	if !w.Unscaled {
		require.NoError(t, c.SubResource("scale").Patch(t.Context(), running.DeepCopy(), patch(`{"spec":{"replicas":3}}`)))
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(running), running))
		replicas, _, err := unstructured.NestedInt64(running.Object, "spec", "replicas")
		require.NoError(t, err)
		assert.EqualValues(t, 3, replicas)
	}
	assert.NoError(t, c.Delete(t.Context(), running))
}
