package takeover_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
	"github.com/flotilla-project/flotilla/kustomize/test/openkruise"
)

// These are resources that tests look at.
var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	revisions   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	sets        = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "clonesets"}
	bindings    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
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

// CloneSets change hands and back while OpenKruise's manager goes on: SidecarSets stay its own.
func TestCloneSetsChangeHandsAndBack(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	old := oldManager(t)
	openKruise(t, old)
	t.Cleanup(func() { withoutOpenKruise(t) })
	require.NoError(t, old.Pass(t.Context()))
	before := everything(t)

	output, code := call(t, clitest.Administrator, "takeover", "cloneset", "--dry-run")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "  CloneSet: 1 objects, 4 pods\n")
	assert.Contains(t, output, "    MutatingWebhookConfiguration kruise-mutating-webhook-configuration: loses mcloneset.kb.io\n")
	assert.Contains(t, output, "converted by Service flotilla-system/cloneset-webhook instead of Service kruise-system/kruise-webhook-service\n")
	assert.Equal(t, before, everything(t), "a dry run writes nothing")
	require.NoError(t, touch(t, old, pods, "web-2f49m"), "the old manager still works")
	before = everything(t)

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--wait=false", "--settle=0", "--timeout=30s")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "4 pods: none was written or restarted\n")
	assert.Contains(t, output, "cloneset: the way back: flotilla takeover cloneset --undo\n")

	withoutWebhooks(t)
	require.NoError(t, old.Pass(t.Context()), "the old manager starts again")
	for _, resource := range webhooks {
		configuration, err := client.Resource(resource).Get(t.Context(), oldName[resource.Resource], metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, kept[resource.Resource], rules(t, configuration), "entries of other kinds stay, and those of CloneSets do not come back")
	}
	assert.Equal(t, "cloneset-webhook", converter(t))
	for what, err := range map[string]error{
		"a set":        touch(t, old, sets, "web"),
		"a pod":        touch(t, old, pods, "web-2f49m"),
		"a revision":   touch(t, old, revisions, "web-d554877cb"),
		"a deletion":   old.Objects.Resource(pods).Namespace("default").Delete(t.Context(), "web-2f49m", metav1.DeleteOptions{}),
		"a new pod":    create(t, old.Objects, copyOf(t, "Pod", "web-2f49m", "web-new")),
		"pod's status": touchStatus(t, old, pods, "web-2f49m"),
		"set's status": touchStatus(t, old, sets, "web"),
	} {
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}
	eventually(t, func() error {
		err := client.Resource(definitions).Delete(t.Context(), "clonesets.apps.kruise.io", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("the CRD can be deleted: %v", err)
		}
		return nil
	})
	require.NoError(t, touch(t, old, pods, "alone"), "pods of nobody's are free")
	ofAnother := copyOf(t, "CloneSet", "web", "subset")
	ofAnother.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "apps.kruise.io/v1alpha1", Kind: "UnitedDeployment", Name: "united", UID: "1", Controller: new(true),
	}})
	require.NoError(t, create(t, old.Objects, ofAnother), "a UnitedDeployment still makes CloneSets")
	require.NoError(t, touch(t, old, sets, "subset"))
	assert.True(t, apierrors.IsForbidden(touchStatus(t, old, sets, "subset")), "the status of any CloneSet is Flotilla's")
	require.NoError(t, client.Resource(sets).Namespace("default").Delete(t.Context(), "subset", metav1.DeleteOptions{}))

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--wait=false", "--settle=0", "--timeout=30s")
	require.Equal(t, cli.Done, code, "again: %s", output)
	assert.Equal(t, "cloneset-webhook", converter(t))

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo", "--wait=false", "--settle=0", "--timeout=30s")
	require.Equal(t, cli.Done, code, output)
	eventually(t, func() error { return touch(t, old, pods, "web-2f49m") })
	require.NoError(t, old.Pass(t.Context()))
	assert.Equal(t, "kruise-webhook-service", converter(t))
	after := everything(t)
	for name := range before {
		if name != "Pod web-2f49m" && name != "Pod alone" {
			assert.Equal(t, before[name], after[name], name)
		}
	}
	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "nothing was taken over, or it was given back")
}

// What a webhook for all pods does is turned off by its gate, and a CRD that OpenKruise did not have is guarded too.
func TestGatesAreTurnedOffAndOn(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	for _, object := range decode(t, "testdata/deployment.yaml") {
		require.NoError(t, create(t, client, object))
	}
	account(t)
	const kinds = `{"workloads":[{"Group":"example.io","Kind":"GameServerSet"}]}`
	const key = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
	configMaps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	_, err := configMaps.Namespace("kruise-system").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kruise-configuration"},
		"data": map[string]any{key: kinds, "other": "x"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	arguments := func() []string {
		deployment, err := client.Resource(deployments).Namespace("kruise-system").Get(t.Context(), "kruise-controller-manager", metav1.GetOptions{})
		require.NoError(t, err)
		containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		found, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
		require.NoError(t, err)
		return found
	}

	output, code := call(t, clitest.Administrator, "takeover", "spread", "--wait=false", "--settle=0", "--timeout=30s")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, []string{"--v=4", "--feature-gates=ImagePullJobGate=true,WorkloadSpread=false"}, arguments())
	crd, err := client.Resource(definitions).Get(t.Context(), "workloadspreads.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, apply.Guarded(crd))
	copied, err := configMaps.Namespace(install.Namespace).Get(t.Context(), "kruise-configuration", metav1.GetOptions{})
	require.NoError(t, err, "its custom workloads go on being spread")
	assert.Equal(t, map[string]any{key: kinds}, copied.Object["data"])
	output, code = call(t, clitest.Administrator, "install", "spread", "--wait=false")
	require.Equal(t, cli.Done, code, "nothing of it is somebody else's: %s", output)
	crd, err = client.Resource(definitions).Get(t.Context(), "workloadspreads.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, apply.Guarded(crd), "to install again keeps the guard")

	output, code = call(t, clitest.Administrator, "takeover", "spread", "--undo", "--wait=false", "--settle=0", "--timeout=30s")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, []string{"--v=4", "--feature-gates=ImagePullJobGate=true,WorkloadSpread=true"}, arguments())
}

func TestNothingIsBegunThatCannotBeEnded(t *testing.T) {
	clitest.NeedsServer(t)
	cases := []struct {
		name, kubeconfig string
		args             []string
		code             cli.Code
		want             string
	}{
		{"the node agent", clitest.Administrator, []string{"daemon"}, cli.Misused, "both would act on a node"},
		{"no such feature", clitest.Administrator, []string{"sidecarset"}, cli.Misused, `there is no feature "sidecarset"`},
		{"both ways", clitest.Administrator, []string{"jobs", "--dry-run", "--undo"}, cli.Misused, "--dry-run is about taking over"},
		{"one namespace", clitest.Administrator, []string{"jobs", "--only-namespace", "team"}, cli.Misused, "nobody would look after those of the others"},
		{"no right to look", clitest.Nobody, []string{"jobs", "--dry-run"}, cli.Failed, "ask whoever manages the cluster for this right"},
		{"nothing to give back", clitest.Administrator, []string{"jobs", "--undo"}, cli.Failed, "nothing was taken over"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			output, code := call(t, c.kubeconfig, append([]string{"takeover"}, c.args...)...)
			assert.Equal(t, c.code, code, output)
			assert.Contains(t, output, c.want)
		})
	}
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

// openKruise creates what OpenKruise has on a cluster: its account, webhooks, CRD, and a CloneSet with its pods.
func openKruise(t *testing.T, old openkruise.Manager) {
	t.Helper()
	client := clitest.Objects(t)
	features, err := catalog.Select("cloneset")
	require.NoError(t, err)
	manifests, err := install.Manifests(features[0], install.Settings{})
	require.NoError(t, err)
	for _, object := range manifests {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		require.NoError(t, unstructured.SetNestedMap(object.Object, old.Conversion(), "spec", "conversion", "webhook"))
		object.SetLabels(nil)
		_, err := client.Resource(definitions).Create(t.Context(), object, metav1.CreateOptions{FieldManager: "helm"})
		require.NoError(t, err)
	}
	eventually(t, func() error {
		crd, err := client.Resource(definitions).Get(t.Context(), "clonesets.apps.kruise.io", metav1.GetOptions{})
		if err == nil && !apply.Established(crd) {
			err = errors.New("is not served yet")
		}
		if err == nil {
			_, err = client.Resource(sets).List(t.Context(), metav1.ListOptions{})
		}
		return err
	})
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
			if object.GetKind() == "CustomResourceDefinition" {
				object.SetAnnotations(nil)
				object.SetLabels(nil)
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

// converter returns the Service that converts CloneSets.
func converter(t *testing.T) string {
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
	require.NoError(t, apply.Await(t.Context(), time.Minute, func(string) {}, func(context.Context) (bool, string, error) {
		err := check()
		if err != nil {
			return false, err.Error(), nil //nolint:nilerr // what it waits for
		}
		return true, "", nil
	}))
}
