package install_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// Helm notes a release in its objects, and keeps a Secret as its record. test/charts does the same with Helm itself.
func TestInstallAndUninstallRefuseWhatHelmManages(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	output, code := call(t, clitest.Administrator, "install", "spread", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	defer remove(t, "spread", "--delete-crds", "--yes")
	note := func(resource schema.GroupVersionResource, namespace, name string) {
		_, err := client.Resource(resource).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{
			"labels":{"app.kubernetes.io/managed-by":"Helm"},
			"annotations":{"meta.helm.sh/release-name":"zones","meta.helm.sh/release-namespace":"default"}}}`), metav1.PatchOptions{FieldManager: "helm"})
		require.NoError(t, err)
	}
	note(deployments, install.Namespace, "spread-manager")
	note(definitions, "", "workloadspreads.apps.kruise.io")
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("default")
	record := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"metadata": map[string]any{"name": "sh.helm.release.v1.zones.v1", "labels": map[string]any{"owner": "helm", "name": "zones"}},
	}}
	_, err := secrets.Create(t.Context(), record, metav1.CreateOptions{})
	require.NoError(t, err)
	defer func() {
		_ = secrets.Delete(context.WithoutCancel(t.Context()), record.GetName(), metav1.DeleteOptions{})
	}()

	const remedy = " is part of release zones in namespace default. Upgrade or remove it with Helm: " +
		"helm uninstall zones --namespace default leaves CRDs, objects and pods"
	output, code = call(t, clitest.Administrator, "install", "spread", "--wait=false")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "spread is managed by Helm: CustomResourceDefinition workloadspreads.apps.kruise.io"+remedy+
		". To overwrite its fields anyway, add --force-conflicts\n")
	output, code = call(t, clitest.Administrator, "uninstall", "spread")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "spread is managed by Helm: Deployment flotilla-system/spread-manager"+remedy+"\n")

	require.NoError(t, secrets.Delete(t.Context(), record.GetName(), metav1.DeleteOptions{}))
	output, code = call(t, clitest.Administrator, "install", "spread", "--wait=false")
	assert.Equal(t, cli.Done, code, "a release that is gone manages nothing: "+output)
}
