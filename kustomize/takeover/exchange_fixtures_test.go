package takeover_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
	"github.com/flotilla-project/flotilla/kustomize/test/openkruise"
)

// kindOfOld is a kind as a release of OpenKruise has it.
type kindOfOld struct {
	old    openkruise.Manager
	name   string // of the CRD
	stored schema.GroupVersionResource
	served []string
}

// oldKind creates the CRD of a release until the test ends.
func oldKind(t *testing.T, release, resource string) kindOfOld {
	t.Helper()
	old, client := oldManager(t), clitest.Objects(t)
	definition, err := old.CRD(release, resource)
	require.NoError(t, err)
	definition.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "kruise", "controller-gen.kubebuilder.io/version": "v0.16.5"})
	_, err = client.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{FieldManager: "helm"})
	require.NoError(t, err)
	t.Cleanup(func() { withoutCRD(t, definition.GetName()) })
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind := kindOfOld{
		old: old, name: definition.GetName(), stored: schema.GroupVersionResource{Group: group, Version: apply.StorageVersion(definition), Resource: resource},
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		kind.served = append(kind.served, version.(map[string]any)["name"].(string))
	}
	clitest.AwaitKinds(t, kind.name)
	require.NoError(t, kind.servedAsBefore(t))
	return kind
}

func (k kindOfOld) definition(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	crd, err := clitest.Objects(t).Resource(definitions).Get(t.Context(), k.name, metav1.GetOptions{})
	require.NoError(t, err)
	return crd
}

func (k kindOfOld) path(name string) string {
	return fmt.Sprintf("/apis/%s/namespaces/default/%s/%s", k.stored.GroupVersion(), k.stored.Resource, name)
}

// create creates an object and its status, and deletes it when the test ends.
func (k kindOfOld) create(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	resource := clitest.Objects(t).Resource(k.stored).Namespace("default")
	var stored *unstructured.Unstructured
	eventually(t, func() (err error) {
		stored, err = resource.Create(t.Context(), object, metav1.CreateOptions{})
		return err
	})
	stored.Object["status"] = object.Object["status"]
	stored, err := resource.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, resource.Delete(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{}))
	})
	return stored
}

// servedAsBefore returns an error if the versions that the server serves are not those of OpenKruise's CRD.
func (k kindOfOld) servedAsBefore(t *testing.T) error {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(configOf(t, clitest.Administrator))
	require.NoError(t, err)
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	var served []string
	for _, list := range lists {
		group, version, _ := strings.Cut(list.GroupVersion, "/")
		if group == k.stored.Group && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.stored.Resource }) {
			served = append(served, version)
		}
	}
	slices.Sort(served)
	if !slices.Equal(k.served, served) {
		return fmt.Errorf("served are %v instead of %v", served, k.served)
	}
	return nil
}

// mayWrite asks whether a client may write an object, and writes nothing.
func mayWrite(t *testing.T, client dynamic.Interface, resource schema.GroupVersionResource, name string) error {
	t.Helper()
	_, err := client.Resource(resource).Namespace("default").Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"touched": "not"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// podOf creates a pod that an object owns.
func podOf(t *testing.T, owner *unstructured.Unstructured) string {
	t.Helper()
	pod := parsed(t, "{apiVersion: v1, kind: Pod, metadata: {namespace: default, labels: {app: web}}, spec: {containers: [{name: main, image: 'nginx:1.14.2'}]}}")
	pod.SetName("owned")
	pod.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}})
	client := clitest.Objects(t).Resource(pods).Namespace("default")
	_, err := client.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, client.Delete(context.WithoutCancel(t.Context()), "owned", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	})
	return "owned"
}

// oldWebhooks creates OpenKruise's webhook configurations, with a webhook for a kind, and counts the requests for it.
func oldWebhooks(t *testing.T, kind kindOfOld) *atomic.Int64 {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked.Add(1)
		request, _ := review["request"].(map[string]any)
		review["response"] = map[string]any{"uid": request["uid"], "allowed": true}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	webhook := func(name, group, resource string) any {
		return map[string]any{
			"name": name + ".kb.io", "admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "failurePolicy": "Fail",
			"clientConfig": map[string]any{
				"url":      server.URL + "/" + name,
				"caBundle": base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
			},
			"rules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{"*"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{resource},
			}},
		}
	}
	for i, kindName := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		list := []any{webhook("sidecarset", "apps.kruise.io", "sidecarsets"), webhook("taken", kind.stored.Group, kind.stored.Resource)}
		text, err := json.Marshal(list)
		require.NoError(t, err)
		configuration := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kindName, "webhooks": list,
		}}
		configuration.SetName(oldName[webhooks[i].Resource])
		configuration.SetAnnotations(map[string]string{"template": string(text)})
		require.NoError(t, create(t, clitest.Objects(t), configuration))
		t.Cleanup(func() {
			assert.NoError(t, clitest.Objects(t).Resource(webhooks[i]).Delete(context.WithoutCancel(t.Context()), configuration.GetName(), metav1.DeleteOptions{}))
		})
	}
	return &asked
}

// withoutWebhooksOf removes the webhooks of a feature of Flotilla's, which no manager answers here.
func withoutWebhooksOf(t *testing.T, feature string, kind kindOfOld) {
	t.Helper()
	client := clitest.Objects(t)
	for _, resource := range webhooks {
		for _, name := range []string{feature + "-mutating", feature + "-validating"} {
			err := client.Resource(resource).Delete(t.Context(), name, metav1.DeleteOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err), err)
		}
	}
	eventually(t, func() error { return mayWrite(t, client, kind.stored, "web") })
}

// withoutCRD deletes a CRD with its objects; the policy against that may have just gone.
func withoutCRD(t *testing.T, name string) {
	t.Helper()
	client := clitest.Objects(t).Resource(definitions)
	assert.NoError(t, apply.Await(context.WithoutCancel(t.Context()), 5*time.Minute, func(string) {}, func(ctx context.Context) (bool, string, error) {
		err := client.Delete(ctx, name, metav1.DeleteOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(name, " is there: ", err), nil
	}))
}

// raw returns objects as the server sends them.
func raw(t *testing.T, paths ...string) []string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(configOf(t, clitest.Administrator))
	require.NoError(t, err)
	var all []string
	for _, path := range paths {
		text, err := client.RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all
}

// argumentsOfManager returns the arguments of OpenKruise's manager.
func argumentsOfManager(t *testing.T) []string {
	t.Helper()
	deployment, err := clitest.Objects(t).Resource(deployments).Namespace("kruise-system").Get(t.Context(), "kruise-controller-manager", metav1.GetOptions{})
	require.NoError(t, err)
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	found, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	require.NoError(t, err)
	return found
}

// whole returns what a takeover may write, without what the server maintains. Of OpenKruise's manager there are the
// arguments, which are checked elsewhere, and of Flotilla there stays the namespace with its quota.
func whole(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for group, resources := range map[string][]string{
		"":                             {"services", "secrets", "configmaps", "serviceaccounts"},
		"apps":                         {"deployments", "daemonsets", "controllerrevisions"},
		"policy":                       {"poddisruptionbudgets"},
		"networking.k8s.io":            {"networkpolicies"},
		"coordination.k8s.io":          {"leases"},
		"rbac.authorization.k8s.io":    {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
		"apiextensions.k8s.io":         {"customresourcedefinitions"},
		"admissionregistration.k8s.io": {"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	} {
		for _, resource := range resources {
			list, err := clitest.Objects(t).Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, object := range list.Items {
				object.SetManagedFields(nil)
				object.SetGeneration(0)
				object.SetResourceVersion("")
				switch object.GetKind() {
				case "CustomResourceDefinition":
					delete(object.Object, "status")
				case "Lease": // the API server renews its own
					delete(object.Object, "spec")
				case "Deployment":
					if object.GetNamespace() == "kruise-system" {
						delete(object.Object, "spec")
					}
				}
				all[strings.TrimSpace(object.GetKind()+" "+strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))] = object.Object
			}
		}
	}
	return all
}
