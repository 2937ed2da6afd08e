package setup

import (
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

	"github.com/flotilla-project/flotilla/cloneset/config"
)

// What users of OpenKruise ran into and manifests can prevent; the numbers are those of its issues.

// hook is what the two kinds of webhooks have in common.
type hook struct {
	name    string
	client  admissionregistrationv1.WebhookClientConfig
	rules   []admissionregistrationv1.RuleWithOperations
	timeout *int32
}

func hooks(t *testing.T) []hook {
	t.Helper()
	var all []hook
	for _, c := range testenv.ManifestsOf[admissionregistrationv1.MutatingWebhookConfiguration](t, config.Files, "webhook/mutating.yaml", "MutatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			all = append(all, hook{w.Name, w.ClientConfig, w.Rules, w.TimeoutSeconds})
		}
	}
	for _, c := range testenv.ManifestsOf[admissionregistrationv1.ValidatingWebhookConfiguration](t, config.Files, "webhook/validating.yaml", "ValidatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			all = append(all, hook{w.Name, w.ClientConfig, w.Rules, w.TimeoutSeconds})
		}
	}
	return all
}

// 252, 343, 453, 535, 634, 1448, 1521: no pod could be made, not even the operator's, while the operator was down.
func TestNothingButCloneSetsWaitsForTheOperator(t *testing.T) {
	for _, w := range hooks(t) {
		for _, rule := range w.rules {
			assert.Equal(t, []string{"apps.kruise.io"}, rule.APIGroups, w.name)
			assert.Equal(t, []string{"clonesets"}, rule.Resources, w.name)
		}
		require.NotNil(t, w.timeout, w.name)
		assert.LessOrEqual(t, *w.timeout, int32(10), "%s: the API server's own default is the longest wait", w.name)
	}
}

// 453, 535, 1521, 1958: applying the manifests again took the bundle away.
func TestApplyingAgainTakesNoBundleAway(t *testing.T) {
	for _, w := range hooks(t) {
		assert.Nil(t, w.client.CABundle, w.name)
	}
	for _, crd := range testenv.ManifestsOf[apiextensionsv1.CustomResourceDefinition](t, config.Files, "crd/clonesets.yaml", "CustomResourceDefinition") {
		require.NotNil(t, crd.Spec.Conversion)
		assert.Nil(t, crd.Spec.Conversion.Webhook.ClientConfig.CABundle)
	}
}

// 1482, 1793: whoever got hold of a node could read all secrets of the cluster.
func TestTheOperatorReadsNoSecretButItsOwn(t *testing.T) {
	for _, role := range testenv.ManifestsOf[rbacv1.ClusterRole](t, config.Files, "rbac/manager_role.yaml", "ClusterRole") {
		for _, rule := range role.Rules {
			assert.NotContains(t, rule.Resources, "secrets")
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				assert.NotContains(t, list, "*")
			}
		}
	}
	for _, role := range testenv.ManifestsOf[rbacv1.Role](t, config.Files, "rbac/namespace_role.yaml", "Role") {
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.Verbs, []string{"create"}) {
				assert.Equal(t, []string{"cloneset-webhook-certs"}, rule.ResourceNames)
			}
		}
	}
}

// 2122, 2287: years later the stored version was still v1alpha1.
func TestTheStoredVersionIsV1beta1(t *testing.T) {
	for _, crd := range testenv.ManifestsOf[apiextensionsv1.CustomResourceDefinition](t, config.Files, "crd/clonesets.yaml", "CustomResourceDefinition") {
		stored := map[string]bool{}
		for _, version := range crd.Spec.Versions {
			stored[version.Name] = version.Storage
			assert.True(t, version.Served, version.Name)
		}
		assert.Equal(t, map[string]bool{"v1alpha1": false, "v1beta1": true}, stored)
	}
}

// 68: the limits were too small for large clusters.
func TestNoLimitOfCPUSlowsTheOperatorDown(t *testing.T) {
	for _, d := range testenv.ManifestsOf[appsv1.Deployment](t, config.Files, "manager/deployment.yaml", "Deployment") {
		for _, c := range d.Spec.Template.Spec.Containers {
			assert.NotContains(t, c.Resources.Limits, corev1.ResourceCPU, c.Name)
		}
	}
}
