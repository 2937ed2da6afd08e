package config

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

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

// 1482, 1793: whoever got hold of a node could read all secrets of the cluster.
func TestNobodyReadsSecretsOfTheCluster(t *testing.T) {
	for _, file := range []string{"rbac/manager_role.yaml", "rbac/agent_role.yaml", "rbac/user_roles.yaml"} {
		for _, role := range testenv.ManifestsOf[rbacv1.ClusterRole](t, Files, file, "ClusterRole") {
			for _, rule := range role.Rules {
				assert.NotContains(t, rule.Resources, "secrets", role.Name)
				for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
					assert.NotContains(t, list, "*", role.Name)
				}
			}
		}
	}
	for _, role := range testenv.ManifestsOf[rbacv1.Role](t, Files, "rbac/config_role.yaml", "Role") {
		assert.Equal(t, "kruise-daemon-config", role.Namespace)
		assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}, role.Rules)
	}
}

// Whoever may edit a namespace may not restart every container in it for that reason.
func TestRestartsAreNoPartOfEdit(t *testing.T) {
	for _, role := range testenv.ManifestsOf[rbacv1.ClusterRole](t, Files, "rbac/user_roles.yaml", "ClusterRole") {
		assert.NotContains(t, role.Labels, "rbac.authorization.k8s.io/aggregate-to-edit", role.Name)
		assert.NotContains(t, role.Labels, "rbac.authorization.k8s.io/aggregate-to-admin", role.Name)
	}
}

// 453, 535, 1521, 1958: applying the manifests again took the bundle away.
func TestApplyingAgainTakesNoBundleAway(t *testing.T) {
	for _, c := range testenv.ManifestsOf[admissionregistrationv1.MutatingWebhookConfiguration](t, Files, "webhook/mutating.yaml", "MutatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			assert.Nil(t, w.ClientConfig.CABundle, w.Name)
		}
	}
	for _, c := range testenv.ManifestsOf[admissionregistrationv1.ValidatingWebhookConfiguration](t, Files, "webhook/validating.yaml", "ValidatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			assert.Nil(t, w.ClientConfig.CABundle, w.Name)
		}
	}
	files, err := fs.Glob(Files, "crd/*s.yaml")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		for _, crd := range testenv.ManifestsOf[apiextensionsv1.CustomResourceDefinition](t, Files, file, "CustomResourceDefinition") {
			require.NotNil(t, crd.Spec.Conversion)
			assert.Nil(t, crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
		}
	}
}

// 252, 343, 453, 535, 634, 1448, 1521: no pod could be made, not even the operator's, while the operator was down.
func TestPodsWaitForTheOperatorOnlyWhereTheyAskForIt(t *testing.T) {
	for _, c := range testenv.ManifestsOf[admissionregistrationv1.MutatingWebhookConfiguration](t, Files, "webhook/mutating.yaml", "MutatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			require.NotNil(t, w.TimeoutSeconds, w.Name)
			assert.LessOrEqual(t, *w.TimeoutSeconds, int32(10), w.Name)
			if !slices.Contains(w.Rules[0].Resources, "pods") {
				continue
			}
			assert.NotEmpty(t, w.MatchConditions)
			require.NotNil(t, w.NamespaceSelector)
			assert.Equal(t, []string{"kube-system", "flotilla-system"}, w.NamespaceSelector.MatchExpressions[0].Values)
		}
	}
}
