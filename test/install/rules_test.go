package install

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The rules for the manifests of every feature. The numbers are issues of OpenKruise: problems of its users that
// manifests can prevent. Rules for one feature are in its config.

var groups = []string{"apps.kruise.io", "policy.kruise.io"}

// 71, 849, 1191, 1624: an overlay has one manager, no CRD and no webhook for kinds of another feature, and grants
// rights only to its own accounts. The CRDs can be installed alone.
func TestEachFeatureStandsAlone(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			own := f.ownKinds(t)
			namespaces := []string{"", Namespace}
			for _, o := range f.overlay {
				if o.GetKind() == "Namespace" {
					namespaces = append(namespaces, o.GetName())
				}
			}
			kinds := map[string]int{}
			for _, o := range f.extended {
				kinds[o.GetKind()]++
				assert.Contains(t, namespaces, o.GetNamespace(), "%s %s", o.GetKind(), o.GetName())
			}
			assert.Equal(t, 1, kinds["Deployment"])
			for _, w := range webhooks(t, f.extended) {
				for _, rule := range w.Rules {
					for _, resource := range rule.Resources {
						assert.True(t, slices.Contains(own, resource) || ofPods(resource), "%s is about %s", w.Name, resource)
					}
				}
			}
			assert.Equal(t, crdNames(crds(f.definitions)), crdNames(f.definitions), "config/crd has CRDs only")
			assert.Len(t, f.definitions, len(own))
		})
	}
}

func crdNames(objects []unstructured.Unstructured) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	return names
}

// 252, 343, 453, 535, 634, 1448, 1521: requests that do not concern the feature call none of its webhooks, in
// particular not those for the operator's own pods.
func TestWebhooksAreAboutWhatAsksForThem(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			all := webhooks(t, f.overlay)
			require.NotEmpty(t, all)
			workload := slices.ContainsFunc(crds(f.overlay), isScaled)
			for _, w := range all {
				for _, rule := range w.Rules {
					assert.NotContains(t, rule.Resources, "*", w.Name)
					assert.NotContains(t, rule.APIVersions, "*", w.Name)
					assert.NotContains(t, rule.Operations, admissionregistrationv1.OperationAll, w.Name)
					if len(rule.APIGroups) != 1 || !slices.Contains(groups, rule.APIGroups[0]) {
						asksFor := len(w.MatchConditions) > 0 || onlyEvictions(rule) && marked(w)
						assert.True(t, asksFor, "%s is asked about all %v", w.Name, rule.Resources)
						assert.False(t, workload, "%s is asked about pods of workloads", w.Name)
					}
				}
			}
			for _, w := range webhooks(t, f.extended) {
				require.NotNil(t, w.TimeoutSeconds, "%s: the API server waits for ten seconds by default", w.Name)
				assert.LessOrEqual(t, *w.TimeoutSeconds, int32(10), w.Name)
				if slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
					return slices.ContainsFunc(r.Resources, ofPods)
				}) {
					assert.Subset(t, excludedNamespaces(w), []string{"kube-system", Namespace}, w.Name)
				}
			}
		})
	}
}

// ofPods reports whether a resource is pods or a subresource of them.
func ofPods(resource string) bool { return resource == "pods" || strings.HasPrefix(resource, "pods/") }

// onlyEvictions reports whether a rule is about evictions, whose requests hold no pod that a condition could look at.
func onlyEvictions(rule admissionregistrationv1.RuleWithOperations) bool {
	return slices.Equal(rule.Resources, []string{"pods/eviction"})
}

// marked reports whether the webhook is called only in namespaces with a label that an operator gives them.
func marked(w admissionregistrationv1.ValidatingWebhook) bool {
	return w.NamespaceSelector != nil && slices.ContainsFunc(w.NamespaceSelector.MatchExpressions, func(e metav1.LabelSelectorRequirement) bool {
		return e.Operator == metav1.LabelSelectorOpExists && strings.Contains(e.Key, "kruise.io/")
	})
}

// excludedNamespaces returns the namespaces for whose objects the webhook is not called.
func excludedNamespaces(w admissionregistrationv1.ValidatingWebhook) []string {
	var names []string
	if w.NamespaceSelector == nil {
		return nil
	}
	for _, e := range w.NamespaceSelector.MatchExpressions {
		if e.Key == "kubernetes.io/metadata.name" && e.Operator == "NotIn" {
			names = append(names, e.Values...)
		}
	}
	return names
}

// 453, 535, 1521, 1958: applying the manifests again removes no CA bundle. The API server calls the feature's own
// Service.
func TestNoManifestHoldsABundle(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, w := range webhooks(t, f.extended) {
				assert.Nil(t, w.ClientConfig.CABundle, w.Name)
				require.NotNil(t, w.ClientConfig.Service, w.Name)
				assert.Equal(t, Namespace, w.ClientConfig.Service.Namespace, w.Name)
				assert.Equal(t, f.name+"-webhook", w.ClientConfig.Service.Name, w.Name)
			}
			for _, crd := range crds(f.overlay) {
				client, found, err := unstructured.NestedMap(crd.Object, "spec", "conversion", "webhook", "clientConfig")
				require.NoError(t, err)
				require.True(t, found, crd.GetName())
				assert.Equal(t, map[string]any{"service": map[string]any{
					"namespace": Namespace, "name": f.name + "-webhook", "path": "/convert",
				}}, client, crd.GetName())
			}
		})
	}
}

// 2122, 2287: years later the stored version was still v1alpha1.
func TestV1beta1IsStored(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, crd := range crds(f.overlay) {
				stored := map[string]any{}
				for _, version := range versions(crd) {
					stored[version["name"].(string)] = version["storage"]
					assert.Equal(t, true, version["served"], crd.GetName())
				}
				assert.Equal(t, map[string]any{"v1alpha1": false, "v1beta1": true}, stored, crd.GetName())
			}
		})
	}
}

// annotationLimit is the size of all annotations of an object; client-side apply keeps the whole object there.
const annotationLimit = 256 << 10

func TestCRDsCanBeAppliedInEveryWay(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, crd := range crds(f.overlay) {
				compact, err := json.Marshal(crd.Object)
				require.NoError(t, err)
				assert.Less(t, len(compact), annotationLimit, crd.GetName())
			}
		})
	}
}

// 1482, 1793: an attacker with access to a node could read all Secrets of the cluster. No account has all verbs or all
// resources, and none may list Secrets, except the manager its own one.
//
// Only the copies of pull secrets are written by the manager of another feature, in a namespace for them alone.
func TestNoRoleReadsSecretsOfOthers(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			for _, role := range of[rbacv1.ClusterRole](t, f.extended, "ClusterRole") {
				for _, rule := range role.Rules {
					if role.Name == "jobs-manager-pullsecrets" {
						// The pull secrets that jobs name are copied for the agents: by name, without finding out what there is. Its own
						// role can be left out.
						assert.Equal(t, []string{"secrets"}, rule.Resources, role.Name)
						assert.Equal(t, []string{"get"}, rule.Verbs, role.Name)
						continue
					}
					if f.name == "budget" && slices.Equal(rule.Resources, []string{"*/scale"}) {
						// Workloads of any kind may be protected, and their scales say how many pods they want.
						assert.Equal(t, []string{"get"}, rule.Verbs, role.Name)
						continue
					}
					assert.NotContains(t, rule.Resources, "secrets", role.Name)
					for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
						assert.NotContains(t, list, "*", role.Name)
					}
				}
			}
			for _, role := range of[rbacv1.Role](t, f.extended, "Role") {
				for _, rule := range role.Rules {
					assert.NotContains(t, rule.Resources, "*", role.Name)
					assert.NotContains(t, rule.Verbs, "*", role.Name)
					if !slices.Contains(rule.Resources, "secrets") || role.Name == copierRole {
						continue
					}
					if role.Namespace != Namespace {
						assert.Equal(t, []string{"get"}, rule.Verbs, "%s: secrets of %s", role.Name, role.Namespace)
					} else if !slices.Equal(rule.Verbs, []string{"create"}) {
						assert.Equal(t, []string{f.name + "-webhook-certs"}, rule.ResourceNames, "%s: %v secrets", role.Name, rule.Verbs)
					}
				}
			}
		})
	}
}

// copierRole is the role in daemon's namespace of pull secrets for the manager of jobs, which copies them there.
const copierRole = "daemon-pull-secrets"

// Roles are bound only to the feature's own accounts, and all these accounts exist.
func TestRolesAreGivenToOwnAccounts(t *testing.T) {
	for _, f := range features(t) {
		t.Run(f.name, func(t *testing.T) {
			there := map[string]bool{}
			for _, o := range f.extended {
				there[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = true
			}
			accounts := func(name string, subjects []rbacv1.Subject) {
				for _, s := range subjects {
					assert.True(t, there[s.Kind+" "+s.Namespace+"/"+s.Name], "%s: there is no %s %s/%s", name, s.Kind, s.Namespace, s.Name)
				}
			}
			for _, b := range of[rbacv1.ClusterRoleBinding](t, f.extended, "ClusterRoleBinding") {
				assert.True(t, there[b.RoleRef.Kind+" /"+b.RoleRef.Name], b.Name)
				accounts(b.Name, b.Subjects)
			}
			for _, b := range of[rbacv1.RoleBinding](t, f.extended, "RoleBinding") {
				assert.True(t, there[b.RoleRef.Kind+" "+b.Namespace+"/"+b.RoleRef.Name], b.Name)
				if b.Name == copierRole {
					assert.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: Namespace, Name: "jobs-manager"}}, b.Subjects)
					continue
				}
				accounts(b.Name, b.Subjects)
			}
		})
	}
}
