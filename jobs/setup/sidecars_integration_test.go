package setup

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-project/flotilla/core/testing/await"
	"github.com/flotilla-project/flotilla/core/testing/testenv/operators"

	daemon "github.com/flotilla-project/flotilla/daemon/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/api/v1beta1"
	"github.com/flotilla-project/flotilla/jobs/config"
)

// The manager is refused nothing while sidecars are stopped, with what the component grants.
func TestTheRoleOfTheTerminatorIsEnough(t *testing.T) {
	env.Need(t)
	c := env.Client(t)
	assertAllowed := operators.Granted{
		Env: &env, Operator: Operator(), Files: config.Files,
		Roles: []string{"rbac/manager_role.yaml", "rbac/cluster_role.yaml", "rbac/namespace_role.yaml", "sidecarterminator/role.yaml"},
		Flags: []string{"--feature-gates=SidecarTerminator=true", "--controllers=sidecarterminator"},
	}.Start(t)
	namespace := env.Namespace(t)
	real, virtual := givenNode(t, c, "real-"+namespace, nil), givenNode(t, c, "virtual-"+namespace, map[string]string{daemon.NodeTypeLabel: daemon.VirtualKubelet})
	stopped, replaced := givenFinishedPod(t, c, namespace, real), givenFinishedPod(t, c, namespace, virtual)
	await.Until(t, func(check *assert.CollectT) {
		key := client.ObjectKey{Namespace: namespace, Name: "sidecar-termination-" + string(stopped.UID) + "-ignore"}
		require.NoError(check, c.Get(t.Context(), key, &daemon.ContainerRecreateRequest{}))
		require.NoError(check, c.Get(t.Context(), client.ObjectKeyFromObject(replaced), replaced))
		assert.Equal(check, "quick-exit:1", replaced.Spec.Containers[1].Image)
	})
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(stopped), stopped))
	assert.Equal(t, corev1.PodSucceeded, stopped.Status.Phase)
	assertAllowed()
}

func givenNode(t *testing.T, c client.Client, name string, labels map[string]string) string {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
	return name
}

// givenFinishedPod makes a pod whose main container has ended while its sidecar runs.
func givenFinishedPod(t *testing.T, c client.Client, namespace, node string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "on-" + node}}
	pod.Spec.NodeName, pod.Spec.RestartPolicy = node, corev1.RestartPolicyNever
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}, {Name: "log", Image: "log:1", Env: []corev1.EnvVar{
		{Name: v1beta1.TerminateSidecarEnv, Value: "true"}, {Name: v1beta1.IgnoreSidecarExitCodeEnv, Value: "true"},
		{Name: v1beta1.TerminateSidecarImageEnv, Value: "quick-exit:1"},
	}}}
	require.NoError(t, c.Create(t.Context(), pod))
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "containerd://main"}}},
		{Name: "log", ContainerID: "containerd://log", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
	}
	require.NoError(t, c.Status().Patch(t.Context(), pod, client.MergeFrom(before)))
	return pod
}
