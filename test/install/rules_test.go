package install

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// What users of OpenKruise ran into and manifests can prevent, for every feature there is; the numbers
// are those of its issues.

const group = "apps.kruise.io"

// rendered are the objects that each feature's overlay installs, by feature. Features are the modules that
// have a config.
var rendered = sync.OnceValues(func() (map[string][]unstructured.Unstructured, error) {
	folders, err := filepath.Glob(filepath.Join("..", "..", "*", "config", "default"))
	if err != nil {
		return nil, err
	}
	all := map[string][]unstructured.Unstructured{}
	for _, folder := range folders {
		feature := filepath.Base(filepath.Dir(filepath.Dir(folder)))
		manifests, err := Manifests(feature)
		if err != nil {
			return nil, err
		}
		if all[feature], err = Objects(manifests); err != nil {
			return nil, err
		}
	}
	return all, nil
})

func objectsOf(t *testing.T, feature string) []unstructured.Unstructured {
	t.Helper()
	all, err := rendered()
	require.NoError(t, err)
	return all[feature]
}

// installed are the objects of one kind in the feature's overlay. Fields that the kind does not know fail
// the test.
func installed[T any](t *testing.T, feature, kind string) []T {
	t.Helper()
	var all []T
	for _, o := range objectsOf(t, feature) {
		if o.GetKind() == kind {
			var object T
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &object, true), o.GetName())
			all = append(all, object)
		}
	}
	return all
}

// features are the names of all that can be installed.
func features(t *testing.T) []string {
	t.Helper()
	all, err := rendered()
	require.NoError(t, err)
	names := slices.Sorted(maps.Keys(all))
	require.Subset(t, names, []string{"cloneset", "daemon", "statefulset"})
	return names
}

// What the other tests look at is there.
func TestOverlaysHaveWhatIsJudged(t *testing.T) {
	kinds := map[string]bool{}
	for _, o := range objectsOf(t, "cloneset") {
		kinds[o.GetKind()] = true
	}
	for _, kind := range []string{
		"ClusterRole", "CustomResourceDefinition", "Deployment", "MutatingWebhookConfiguration", "Role", "ValidatingWebhookConfiguration",
	} {
		assert.True(t, kinds[kind], kind)
	}
}

// 71, 849, 1624: an overlay has one manager, and no kind, role or webhook about the kinds of another feature
// but what its manager may ask for where they are served.
func TestEachFeatureStandsAlone(t *testing.T) {
	for _, feature := range features(t) {
		t.Run(feature, func(t *testing.T) {
			assert.Len(t, installed[appsv1.Deployment](t, feature, "Deployment"), 1)
			own := map[string]bool{}
			for _, o := range objectsOf(t, feature) {
				if o.GetKind() == "CustomResourceDefinition" {
					plural, of, _ := strings.Cut(o.GetName(), ".")
					assert.Equal(t, group, of)
					own[plural] = true
				}
				if o.GetNamespace() != "" && o.GetKind() != "Role" && o.GetKind() != "RoleBinding" {
					assert.Contains(t, []string{Namespace, "kruise-daemon-config"}, o.GetNamespace(), "%s %s", o.GetKind(), o.GetName())
				}
			}
			for _, rules := range webhookRules(t, feature) {
				for _, resource := range rules.Resources {
					assert.True(t, own[resource] || resource == "pods", "a webhook is about %s", resource)
				}
			}
		})
	}
}

func webhookRules(t *testing.T, feature string) []admissionregistrationv1.RuleWithOperations {
	t.Helper()
	var all []admissionregistrationv1.RuleWithOperations
	for _, c := range installed[admissionregistrationv1.MutatingWebhookConfiguration](t, feature, "MutatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			all = append(all, w.Rules...)
		}
	}
	for _, c := range installed[admissionregistrationv1.ValidatingWebhookConfiguration](t, feature, "ValidatingWebhookConfiguration") {
		for _, w := range c.Webhooks {
			all = append(all, w.Rules...)
		}
	}
	return all
}

// 252, 343, 453, 535, 634, 1448, 1521: whatever does not ask for the feature waits for no webhook of it.
func TestWebhooksAreAboutWhatAsksForThem(t *testing.T) {
	judge := func(t *testing.T, name string, rules []admissionregistrationv1.RuleWithOperations, seconds *int32, narrowed bool) {
		t.Helper()
		require.NotNil(t, seconds, name)
		assert.LessOrEqual(t, *seconds, int32(10), "%s: the longest wait is the default of the API server", name)
		for _, rule := range rules {
			ours := len(rule.APIGroups) == 1 && rule.APIGroups[0] == group
			assert.True(t, ours || narrowed, "%s is asked about all %v", name, rule.Resources)
			assert.NotContains(t, rule.Resources, "*", name)
			assert.NotContains(t, rule.Operations, admissionregistrationv1.OperationAll, name)
		}
	}
	for _, feature := range features(t) {
		t.Run(feature, func(t *testing.T) {
			for _, c := range installed[admissionregistrationv1.MutatingWebhookConfiguration](t, feature, "MutatingWebhookConfiguration") {
				for _, w := range c.Webhooks {
					judge(t, w.Name, w.Rules, w.TimeoutSeconds, len(w.MatchConditions) > 0 && w.NamespaceSelector != nil)
					assert.Nil(t, w.ClientConfig.CABundle, w.Name)
				}
			}
			for _, c := range installed[admissionregistrationv1.ValidatingWebhookConfiguration](t, feature, "ValidatingWebhookConfiguration") {
				for _, w := range c.Webhooks {
					judge(t, w.Name, w.Rules, w.TimeoutSeconds, false)
					assert.Nil(t, w.ClientConfig.CABundle, w.Name)
				}
			}
		})
	}
}

// 453, 535, 1521, 1958, 2122, 2287: applying the manifests again takes no CA away, and the stored version is
// v1beta1.
func TestDefinitionsHoldNoBundleAndStoreV1beta1(t *testing.T) {
	for _, feature := range features(t) {
		t.Run(feature, func(t *testing.T) {
			for _, crd := range objectsOf(t, feature) {
				if crd.GetKind() != "CustomResourceDefinition" {
					continue
				}
				_, found, err := unstructured.NestedFieldNoCopy(crd.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
				require.NoError(t, err)
				assert.False(t, found)
				versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
				require.NoError(t, err)
				stored := map[string]any{}
				for _, version := range versions {
					v := version.(map[string]any)
					stored[v["name"].(string)] = v["storage"]
					assert.Equal(t, true, v["served"])
				}
				assert.Equal(t, map[string]any{"v1alpha1": false, "v1beta1": true}, stored)
			}
		})
	}
}

// 1482, 1793: no account reads secrets of the cluster, and none may do everything with anything.
func TestNoRoleReadsSecretsOfTheCluster(t *testing.T) {
	for _, feature := range features(t) {
		t.Run(feature, func(t *testing.T) {
			for _, role := range installed[rbacv1.ClusterRole](t, feature, "ClusterRole") {
				for _, rule := range role.Rules {
					assert.NotContains(t, rule.Resources, "secrets", role.Name)
					for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
						assert.NotContains(t, list, "*", role.Name)
					}
				}
			}
			for _, role := range installed[rbacv1.Role](t, feature, "Role") {
				for _, rule := range role.Rules {
					for _, verb := range rule.Verbs {
						named := len(rule.ResourceNames) > 0 || verb == "create"
						config := role.Namespace == "kruise-daemon-config" && verb == "get"
						assert.True(t, named || config || !slices.Contains(rule.Resources, "secrets"), "%s: %s any secret of %s", role.Name, verb, role.Namespace)
					}
				}
			}
		})
	}
}

// 68: the limits were too small for large clusters, and a throttled operator answers webhooks late.
func TestNoManagerIsThrottled(t *testing.T) {
	for _, feature := range features(t) {
		t.Run(feature, func(t *testing.T) {
			for _, d := range installed[appsv1.Deployment](t, feature, "Deployment") {
				for _, c := range d.Spec.Template.Spec.Containers {
					assert.NotContains(t, c.Resources.Limits, corev1.ResourceCPU, c.Name)
				}
			}
		})
	}
}
