package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

func agentPod(t *testing.T) corev1.PodSpec {
	t.Helper()
	return testenv.ManifestsOf[appsv1.DaemonSet](t, Files, "agent/daemon_set.yaml", "DaemonSet")[0].Spec.Template.Spec
}

// An agent is as weak as who uses the runtime's socket can be.
func TestTheAgentHasNoPrivilegeButTheSocket(t *testing.T) {
	pod := agentPod(t)
	assert.False(t, pod.HostNetwork || pod.HostPID || pod.HostIPC)
	assert.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type)
	require.Len(t, pod.Containers, 1)
	assert.Empty(t, pod.InitContainers)
	c := pod.Containers[0]
	assert.Nil(t, c.SecurityContext.Privileged)
	assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, c.SecurityContext.Capabilities)
	assert.Equal(t, "spc_t", c.SecurityContext.SELinuxOptions.Type)
	for _, port := range c.Ports {
		assert.Zero(t, port.HostPort)
	}

	require.Len(t, pod.Volumes, 1)
	assert.Equal(t, "/run/containerd", pod.Volumes[0].HostPath.Path, "one folder, not all of /run")
	require.Len(t, c.VolumeMounts, 1)
	assert.True(t, c.VolumeMounts[0].ReadOnly)
	assert.Equal(t, "/hostvarrun/containerd", c.VolumeMounts[0].MountPath)
}

func TestAnAgentRunsOnEveryRealNode(t *testing.T) {
	pod := agentPod(t)
	assert.Equal(t, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, pod.Tolerations)
	assert.Equal(t, map[string]string{"kubernetes.io/os": "linux"}, pod.NodeSelector)
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	assert.Equal(t, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "type", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"virtual-kubelet"}},
	}}}, terms)
	var node *corev1.EnvVarSource
	for _, e := range pod.Containers[0].Env {
		if e.Name == "NODE_NAME" {
			node = e.ValueFrom
		}
	}
	require.NotNil(t, node)
	assert.Equal(t, "spec.nodeName", node.FieldRef.FieldPath)
}

// Whoever may edit a namespace may not restart every container in it for that reason.
func TestRestartsAreNoPartOfEdit(t *testing.T) {
	for _, role := range testenv.ManifestsOf[rbacv1.ClusterRole](t, Files, "rbac/user_roles.yaml", "ClusterRole") {
		assert.NotContains(t, role.Labels, "rbac.authorization.k8s.io/aggregate-to-edit", role.Name)
		assert.NotContains(t, role.Labels, "rbac.authorization.k8s.io/aggregate-to-admin", role.Name)
	}
}
