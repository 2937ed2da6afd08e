package setup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/contract"
	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	"github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/daemon/config"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

// The manager is refused nothing while it works on every kind.
func TestTheShippedRolesAreEnough(t *testing.T) {
	c := serve(t, features.Defaults(featuregates.All()...))
	givenCRDs(t)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files,
		Roles: []string{"secrets/namespace.yaml", "rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "rbac/config_role.yaml"},
	}.Start(t)

	node := givenReadyNode(t, c, "node-roles")
	imagesAreLookedAfter(t, c, node)
	pod := podsAreStartedInOrder(t, c, node)
	requestsAreEnded(t, c, pod)

	assertAllowed()
}

func givenReadyNode(t *testing.T, c client.Client, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, c.Create(t.Context(), node))
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
	require.NoError(t, c.Status().Update(t.Context(), node))
	return node
}

// imagesAreLookedAfter has a NodeImage made, patched and given up on, and a secret looked for.
func imagesAreLookedAfter(t *testing.T, c client.Client, node *corev1.Node) {
	t.Helper()
	key := client.ObjectKey{Name: node.Name}
	image := &v1beta1.NodeImage{}
	await.Until(t, func(check *assert.CollectT) { assert.NoError(check, c.Get(t.Context(), key, image)) })
	env.Share(t, image)
	gone := v1beta1.SecretReference{Namespace: v1beta1.DefaultConfigNamespace, Name: "gone"}
	testenv.Edit(t, c, image, func(image *v1beta1.NodeImage) {
		image.Spec = newImage(node.Name, gone).Spec
		image.Spec.Images["nginx"].Tags[0].CreatedAt = new(metav1.NewTime(time.Now().Add(-time.Hour)))
	})
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), key, image))
		assert.Empty(check, image.Spec.Images["nginx"].PullSecrets)
		assert.EqualValues(check, 1, image.Status.Failed)
	})
}

// podsAreStartedInOrder has the barriers of a pod opened to the end.
func podsAreStartedInOrder(t *testing.T, c client.Client, node *corev1.Node) *corev1.Pod {
	t.Helper()
	pod := prioritized(env.Namespace(t), "web")
	pod.Spec.NodeName = node.Name
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: contract.KruisePodReady}}
	require.NoError(t, c.Create(t.Context(), pod))
	for _, name := range []string{"proxy", "main"} {
		await.Until(t, func(check *assert.CollectT) {
			barriers := &corev1.ConfigMap{}
			require.NoError(check, c.Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: "web-barrier"}, barriers))
			assert.Contains(check, barriers.Data, map[string]string{"proxy": "p_1", "main": "p_0"}[name])
		})
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		before := client.MergeFrom(pod.DeepCopy())
		pod.Status.Phase = corev1.PodRunning
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Image: "app:1", ImageID: "app@1", ContainerID: "containerd://" + name, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		})
		require.NoError(t, c.Status().Patch(t.Context(), pod, before))
	}
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		assert.Equal(check, "true", pod.Annotations[contract.ContainerLaunchPriorityCompletedAnnotation])
	})
	return pod
}

// requestsAreEnded has a pod held not ready for a request, which ends by its deadline and is removed.
func requestsAreEnded(t *testing.T, c client.Client, pod *corev1.Pod) {
	t.Helper()
	request := &v1beta1.ContainerRecreateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "restart"},
		Spec: v1beta1.ContainerRecreateRequestSpec{
			PodName: pod.Name, Containers: []v1beta1.ContainerToRecreate{{Name: "main"}},
			Strategy:              &v1beta1.RecreateStrategy{UnreadyGracePeriodSeconds: new(int64(1))},
			ActiveDeadlineSeconds: new(int64(5)), TTLSecondsAfterFinished: new(int32(0)),
		},
	}
	require.NoError(t, c.Create(t.Context(), request))
	before := client.MergeFrom(request.DeepCopy())
	request.Status.Phase = v1beta1.RecreateRecreating
	require.NoError(t, c.Status().Patch(t.Context(), request, before))
	held := false
	await.Until(t, func(check *assert.CollectT) {
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		for _, condition := range pod.Status.Conditions {
			held = held || condition.Type == contract.KruisePodReady && condition.Status == corev1.ConditionFalse
		}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(request), request)
		assert.True(check, apierrors.IsNotFound(err), err)
	})
	assert.True(t, held, "the pod was not held")
}
