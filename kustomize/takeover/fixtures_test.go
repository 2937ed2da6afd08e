package takeover_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
	"github.com/flotilla-project/flotilla/kustomize/test/openkruise"
)

// These are resources that tests look at.
var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	revisions   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	sets        = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "clonesets"}
	bindings    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	policies    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	webhooks    = []schema.GroupVersionResource{
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	}
	oldName = map[string]string{
		"mutatingwebhookconfigurations":   "kruise-mutating-webhook-configuration",
		"validatingwebhookconfigurations": "kruise-validating-webhook-configuration",
	}
	resourceOf = map[string]schema.GroupVersionResource{
		"Deployment": deployments, "Namespace": {Version: "v1", Resource: "namespaces"}, "ClusterRoleBinding": bindings, "CloneSet": sets, "Secret": {Version: "v1", Resource: "secrets"}, "ControllerRevision": revisions, "Pod": pods,
		"MutatingWebhookConfiguration": webhooks[0], "ValidatingWebhookConfiguration": webhooks[1],
	}
)

func configOf(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	config, err := flags.ToRESTConfig()
	require.NoError(t, err)
	return config
}

// oldManager returns a manager that may do everything.
func oldManager(t *testing.T) openkruise.Manager {
	t.Helper()
	manager, err := openkruise.New(configOf(t, clitest.Administrator))
	require.NoError(t, err)
	return manager
}

// manager makes a Deployment of OpenKruise's manager.
func manager(t *testing.T) {
	t.Helper()
	client := clitest.Objects(t)
	for _, object := range decode(t, "testdata/deployment.yaml") {
		if err := create(t, client, object); object.GetKind() == "Deployment" || !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	t.Cleanup(func() {
		err := client.Resource(deployments).Namespace("kruise-system").Delete(context.Background(), "kruise-controller-manager", metav1.DeleteOptions{})
		assert.True(t, err == nil || apierrors.IsNotFound(err), err)
	})
}

// account gives OpenKruise's manager its rights, once.
func account(t *testing.T) {
	t.Helper()
	for _, object := range decode(t, "../test/openkruise/account.yaml") {
		if err := create(t, clitest.Objects(t), object); !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
}

// openKruise creates what a release of OpenKruise has on a cluster: its account, webhooks, CRD, and a CloneSet with its pods.
func openKruise(t *testing.T, old openkruise.Manager, release string) {
	t.Helper()
	client := clitest.Objects(t)
	definition, err := old.CRD(release, "clonesets")
	require.NoError(t, err)
	_, err = client.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{FieldManager: "helm"})
	require.NoError(t, err)
	clitest.AwaitKinds(t, definition.GetName())
	account(t)
	for _, file := range []string{"testdata/web.yaml", "../test/openkruise/webhooks.yaml"} {
		for _, object := range decode(t, file) {
			require.NoError(t, create(t, client, object))
		}
	}
}

func decode(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var found []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		found = append(found, object)
	}
}

// create creates an object, and its status if it has one.
func create(t *testing.T, client dynamic.Interface, object *unstructured.Unstructured) error {
	t.Helper()
	resource := client.Resource(resourceOf[object.GetKind()]).Namespace(object.GetNamespace())
	stored, err := resource.Create(t.Context(), object, metav1.CreateOptions{})
	if status, has := object.Object["status"]; has && err == nil {
		stored.Object["status"] = status
		_, err = resource.UpdateStatus(t.Context(), stored, metav1.UpdateOptions{})
	}
	return err
}

// copyOf returns an object of the fixtures with another name and without status.
func copyOf(t *testing.T, kind, name, another string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range decode(t, "testdata/web.yaml") {
		if object.GetKind() == kind && object.GetName() == name {
			object.SetName(another)
			delete(object.Object, "status")
			return object
		}
	}
	t.Fatal("there is no " + kind + " " + name)
	return nil
}

// touch annotates an object as the old manager.
func touch(t *testing.T, old openkruise.Manager, resource schema.GroupVersionResource, name string) error {
	t.Helper()
	_, err := old.Objects.Resource(resource).Namespace("default").Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"touched": "`+time.Now().String()+`"}}}`), metav1.PatchOptions{})
	return err
}

// touchStatus writes a status as the old manager.
func touchStatus(t *testing.T, old openkruise.Manager, resource schema.GroupVersionResource, name string) error {
	t.Helper()
	_, err := old.Objects.Resource(resource).Namespace("default").Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"status": {"conditions": []}}`), metav1.PatchOptions{}, "status")
	return err
}

// withoutWebhooks removes Flotilla's webhooks, which no manager answers here, and waits until nothing is sent to them.
func withoutWebhooks(t *testing.T) {
	t.Helper()
	for resource, name := range map[schema.GroupVersionResource]string{webhooks[0]: "cloneset-mutating", webhooks[1]: "cloneset-validating"} {
		require.NoError(t, clitest.Objects(t).Resource(resource).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	eventually(t, func() error {
		_, err := clitest.Objects(t).Resource(sets).Namespace("default").Patch(t.Context(), "web", types.MergePatchType,
			[]byte(`{"metadata": {"annotations": {"touched": "not"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// everything returns what must come back, without what the server maintains.
func everything(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, resource := range []schema.GroupVersionResource{definitions, webhooks[0], webhooks[1], policies, sets, pods, revisions} {
		list, err := clitest.Objects(t).Resource(resource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, object := range list.Items {
			key := object.GetKind() + " " + object.GetName()
			if object.GetName() == "flotilla-service-account-tokens" { // of the base: it comes with the namespace, and stays
				continue
			}
			if object.GetKind() == "CustomResourceDefinition" {
				object.SetAnnotations(nil)
				delete(object.Object, "status")
			}
			object.SetManagedFields(nil)
			object.SetGeneration(0)
			object.SetResourceVersion("")
			all[key] = object.Object
			if text, has := object.GetAnnotations()["template"]; has {
				templated := &unstructured.Unstructured{}
				require.NoError(t, templated.UnmarshalJSON([]byte(`{"kind": "Template", "webhooks": `+text+`}`)))
				all[key] = []any{rules(t, &object), rules(t, templated)}
			}
		}
	}
	return all
}

// storedVersions returns the versions in which CloneSets may be stored.
func storedVersions(t *testing.T) []string {
	t.Helper()
	crd, err := clitest.Objects(t).Resource(definitions).Get(t.Context(), "clonesets.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err)
	return apply.StoredVersions(crd)
}

// writeAsFlotilla writes a CloneSet in v1beta1, which is stored so: somebody has applied Flotilla's manifests with kubectl, which
// knows of no takeover.
func writeAsFlotilla(t *testing.T, converter clitest.Converter) {
	t.Helper()
	client := clitest.Objects(t)
	converter.Serve(t, "clonesets.apps.kruise.io")
	crd, err := client.Resource(definitions).Get(t.Context(), "clonesets.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = client.Resource(definitions).Update(t.Context(), apply.Store(crd, "v1beta1"), metav1.UpdateOptions{})
	require.NoError(t, err)
	later := copyOf(t, "CloneSet", "web", "later")
	later.SetAPIVersion("apps.kruise.io/v1beta1")
	unstructured.RemoveNestedField(later.Object, "spec", "updateStrategy")
	unstructured.RemoveNestedField(later.Object, "spec", "scaleStrategy")
	require.NoError(t, unstructured.SetNestedField(later.Object, int64(2), "spec", "replicas"))
	beta := sets.GroupResource().WithVersion("v1beta1")
	eventually(t, func() error {
		_, err := client.Resource(beta).Namespace("default").Create(t.Context(), later, metav1.CreateOptions{})
		return err
	})
	require.Equal(t, []string{"v1alpha1", "v1beta1"}, storedVersions(t))
}

// converterOf returns the Service that converts CloneSets.
func converterOf(t *testing.T) string {
	t.Helper()
	crd, err := clitest.Objects(t).Resource(definitions).Get(t.Context(), "clonesets.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err)
	service, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	return service
}

// rules returns the resources of each webhook by its name, in order: how they are put into rules is no matter.
func rules(t *testing.T, configuration *unstructured.Unstructured) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	list, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, webhook := range list {
		fields := webhook.(map[string]any)
		name := fields["name"].(string)
		for _, rule := range fields["rules"].([]any) {
			resources, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
			require.NoError(t, err)
			all[name] = append(all[name], resources...)
		}
		slices.Sort(all[name])
	}
	return all
}

// kept are the rules that the old manager keeps.
var kept = map[string]map[string][]string{
	"mutatingwebhookconfigurations":   {"mpod.kb.io": {"pods"}, "msidecarset.kb.io": {"sidecarsets"}},
	"validatingwebhookconfigurations": {"vprotection.kb.io": {"deployments", "statefulsets", "uniteddeployments"}},
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	require.NoError(t, apply.Await(t.Context(), 5*time.Minute, func(string) {}, func(context.Context) (bool, string, error) {
		err := check()
		if err != nil {
			return false, err.Error(), nil //nolint:nilerr // what it waits for
		}
		return true, "", nil
	}))
}

// reaches runs a command that cannot end, with more time in each run, until it says the text: on a busy machine the steps that
// do end need more than the first run has.
func reaches(t *testing.T, text string, args ...string) (output string, code cli.Code) {
	t.Helper()
	for timeout := 3 * time.Second; timeout < 4*time.Minute; timeout *= 2 {
		var said string
		said, code = call(t, clitest.Administrator, append(args, "--timeout="+timeout.String())...)
		if output += said; strings.Contains(said, text) {
			return output, code
		}
	}
	require.Contains(t, output, text)
	return output, code
}
