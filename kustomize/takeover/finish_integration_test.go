package takeover_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
	"github.com/flotilla-project/flotilla/kustomize/test/openkruise"
)

// parts are what OpenKruise has beside its account, webhooks and CRDs. A SidecarSet is one of its kinds that nobody takes over.
var parts = []struct {
	resource schema.GroupVersionResource
	text     string
}{
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: kruise-system, name: kruise-daemon}
spec:
  selector: {matchLabels: {app: daemon}}
  template:
    metadata: {labels: {app: daemon}}
    spec: {serviceAccountName: kruise-daemon, containers: [{name: daemon, image: d}]}`},
	{schema.GroupVersionResource{Version: "v1", Resource: "services"}, `
{apiVersion: v1, kind: Service, metadata: {namespace: kruise-system, name: kruise-webhook-service}, spec: {ports: [{port: 443}]}}`},
	{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: kruise-system, name: runs-as-the-manager}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {serviceAccountName: kruise-manager, containers: [{name: main, image: d}]}`},
	{definitions, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sidecarsets.apps.kruise.io}
spec:
  group: apps.kruise.io
  scope: Cluster
  names: {kind: SidecarSet, listKind: SidecarSetList, plural: sidecarsets, singular: sidecarset}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`},
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, object.UnmarshalJSON(encoded))
	return object
}

// place returns where objects like this one are.
func place(t *testing.T, resource schema.GroupVersionResource, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	all := clitest.Objects(t).Resource(resource)
	if namespace := object.GetNamespace(); namespace != "" {
		return all.Namespace(namespace)
	}
	return all
}

// At the end of a takeover the objects are stored in Flotilla's version, and of OpenKruise its CRDs alone are left.
func TestTheEndOfATakeover(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	converter := clitest.NewConverter(t)
	old := oldManager(t)
	openKruise(t, old, "1.8.4")
	t.Cleanup(func() { withoutOpenKruise(t) })
	manager(t)
	for _, part := range parts {
		object := parsed(t, part.text)
		_, err := place(t, part.resource, object).Create(t.Context(), object, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = place(t, part.resource, object).Delete(context.Background(), object.GetName(), metav1.DeleteOptions{})
		})
	}
	require.NoError(t, old.Pass(t.Context()))
	output, code := call(t, clitest.Administrator, "takeover", "cloneset", "--wait=false", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	withoutWebhooks(t)
	converter.Serve(t, "clonesets.apps.kruise.io")
	sidecars := schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "sidecarsets"}
	sidecar := parsed(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: proxy}}")
	eventually(t, func() error {
		_, err := client.Resource(sidecars).Create(t.Context(), sidecar, metav1.CreateOptions{})
		return err
	})
	before := everything(t)
	for _, args := range [][]string{nil, {"--dry-run"}, {"cloneset"}} {
		output, code = call(t, clitest.Administrator, append([]string{"takeover", "--finish"}, args...)...)
		assert.Equal(t, cli.Failed, code)
		assert.Contains(t, output, "take over their kinds or delete them first: sidecarsets.apps.kruise.io (1)\n")
	}
	require.NoError(t, client.Resource(sidecars).Delete(t.Context(), "proxy", metav1.DeleteOptions{}))
	output, code = call(t, clitest.Administrator, "takeover", "--finish", "--dry-run")
	assert.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "CustomResourceDefinition clonesets.apps.kruise.io: objects would be stored as v1beta1; they are stored as v1alpha1\n")
	assert.Contains(t, output, "DaemonSet kruise-system/kruise-daemon: would be deleted\n")
	clitest.AllowNobody(t, map[string][]string{
		"get": {"*"}, "list": {"*"}, "create": {"configmaps"}, "patch": {"configmaps"}, "update": {"customresourcedefinitions"}, "delete": {"*"},
		"impersonate": {"serviceaccounts"},
	})
	output, code = call(t, clitest.Nobody, "takeover", "--finish")
	assert.Equal(t, cli.Failed, code, output)
	assert.Contains(t, output, "missing permission: patch customresourcedefinitions.apiextensions.k8s.io/status\n")
	assert.Contains(t, output, "missing permission: patch clonesets.apps.kruise.io/status\n")
	for _, args := range [][]string{{"cloneset", "--undo"}, {"cloneset"}} {
		output, code = call(t, clitest.Nobody, append([]string{"takeover"}, args...)...)
		assert.Equal(t, cli.Failed, code, output)
		assert.Contains(t, output, "missing permission: update deployments.apps in namespace kruise-system")
	}
	assert.Equal(t, before, everything(t), "nothing is written without the rights, nor by a dry run")
	web, err := client.Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)

	cutOff(t)

	output, code = call(t, clitest.Administrator, "takeover", "--finish", "--settle=0", "--timeout=10m")

	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "4 pods: no changes and no restarts\n")
	crd, err := client.Resource(definitions).Get(t.Context(), "clonesets.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err, "CRDs stay")
	assert.Equal(t, []string{"v1beta1"}, apply.StoredVersions(crd))
	assert.False(t, apply.Guarded(crd))
	stored, err := client.Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotEqual(t, web.GetResourceVersion(), stored.GetResourceVersion(), "it was stored anew")
	assert.Equal(t, web.GetGeneration(), stored.GetGeneration())
	for _, object := range []struct {
		resource        schema.GroupVersionResource
		namespace, name string
	}{
		{deployments, "kruise-system", "kruise-controller-manager"},
		{parts[0].resource, "kruise-system", "kruise-daemon"},
		{parts[1].resource, "kruise-system", "kruise-webhook-service"},
		{parts[2].resource, "kruise-system", "runs-as-the-manager"},
		{webhooks[0], "", oldName[webhooks[0].Resource]},
		{webhooks[1], "", oldName[webhooks[1].Resource]},
		{policies, "", "flotilla-takeover-cloneset"},
		{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "flotilla-system", "flotilla-takeover-cloneset"},
	} {
		_, err := client.Resource(object.resource).Namespace(object.namespace).Get(t.Context(), object.name, metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err), "%s: %v", object.name, err)
	}
	err = client.Resource(definitions).Delete(t.Context(), "clonesets.apps.kruise.io", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	assert.True(t, apierrors.IsForbidden(err), "a tool that removes OpenKruise does not take its CRDs along: %v", err)
	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "the feature was not taken over, or was given back")
	require.NoError(t, client.Resource(deployments).Namespace("flotilla-system").Delete(t.Context(), "cloneset-manager", metav1.DeleteOptions{}))
	for _, resource := range []schema.GroupVersionResource{policies, {Group: policies.Group, Version: "v1", Resource: "validatingadmissionpolicybindings"}} {
		require.NoError(t, client.Resource(resource).Delete(t.Context(), "flotilla-takeover-cloneset-crds", metav1.DeleteOptions{}))
	}
	eventually(t, func() error {
		return client.Resource(definitions).Delete(t.Context(), "clonesets.apps.kruise.io", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	})
}

// cutOff runs into a pod of OpenKruise's manager that does not go: what keeps it away from the kinds must stay, and nothing can
// be given back to a manager that is going.
func cutOff(t *testing.T) {
	t.Helper()
	client := clitest.Objects(t)
	pod := parsed(t, `
apiVersion: v1
kind: Pod
metadata: {namespace: kruise-system, name: kruise-controller-manager-1}
spec: {serviceAccountName: kruise-manager, automountServiceAccountToken: false, containers: [{name: manager, image: m}]}`)
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	_, err := client.Resource(accounts).Namespace("kruise-system").Create(t.Context(),
		parsed(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: kruise-manager}}"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, create(t, client, pod))

	output, code := reaches(t, "remove OpenKruise's manager and node agent: not ready", "takeover", "--finish", "--settle=0")

	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "cloneset: clonesets.apps.kruise.io stored as v1beta1: 1 object migrated")
	assert.Regexp(t, `remove OpenKruise's manager and node agent: not ready after \w+: pods of OpenKruise still run: kruise-system/kruise-controller-manager-1; `+
		"run the command again\n", output)
	_, err = client.Resource(policies).Get(t.Context(), "flotilla-takeover-cloneset", metav1.GetOptions{})
	require.NoError(t, err, "a manager that still runs is refused")
	output, code = call(t, clitest.Administrator, "status")
	assert.Equal(t, cli.NotSo, code)
	assert.Contains(t, output, "the end of its takeover from OpenKruise was interrupted; last step: remove OpenKruise's manager and node agent\n")
	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "OpenKruise is removed, or its removal has begun: the kinds of cloneset would have no controller. To finish the takeover: flotilla takeover --finish cloneset")
	assert.NotContains(t, output, "run the command again")
	output, code = call(t, clitest.Administrator, "takeover", "cloneset")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "To continue: flotilla takeover --finish cloneset\n")
	for _, resource := range []schema.GroupVersionResource{pods, accounts} {
		require.NoError(t, client.Resource(resource).Namespace("kruise-system").DeleteCollection(t.Context(),
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}))
	}
}

// Whatever release it is: the CRD goes on storing objects as it did, and what it said comes back.
func TestCRDsOfEachReleaseKeepTheirStorage(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &clitest.Administrator
	cluster, err := apply.Connect(flags)
	require.NoError(t, err)
	old := oldManager(t)
	for feature, resources := range map[string][]string{
		"cloneset": {"clonesets"}, "statefulset": {"statefulsets"}, "daemonset": {"daemonsets"}, "jobs": {"broadcastjobs"},
		"spread": {"workloadspreads"}, "budget": {"podunavailablebudgets"},
	} {
		features, err := catalog.Select(feature)
		require.NoError(t, err)
		manifests, err := install.Manifests(features[0], install.Settings{})
		require.NoError(t, err)
		for _, resource := range resources {
			for _, release := range openkruise.Releases() {
				t.Run(resource+" of "+release, func(t *testing.T) {
					definition, err := old.CRD(release, resource)
					require.NoError(t, err)
					var ours *unstructured.Unstructured
					for _, object := range manifests {
						if object.GetName() == definition.GetName() {
							ours = object
						}
					}
					require.NotNil(t, ours)
					live, err := client.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					require.NoError(t, err, "the server takes it")

					taken := apply.TakenOver(live, ours)

					assert.Equal(t, apply.StorageVersion(definition), apply.StorageVersion(taken))
					assert.True(t, apply.Guarded(taken))
					_, err = cluster.Apply(t.Context(), taken, apply.Options{Force: true, DryRun: true})
					require.NoError(t, err)
				})
			}
		}
	}
}
