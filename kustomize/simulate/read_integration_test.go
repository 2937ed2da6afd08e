package simulate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/forecast"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/simulate"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
	"github.com/flotilla-project/flotilla/kustomize/test/scenes"
)

func TestMain(m *testing.M) { clitest.Main(m) }

var sets = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "clonesets"}

// served installs the CRDs of cloneset, and stores the CloneSet of the tests without an operator.
func served(t *testing.T) {
	t.Helper()
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	output, code := clitest.Commands{install.NewCommand}.Call(t, clitest.Administrator, "install", "cloneset", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	clitest.WithoutWebhooks(t)
	clitest.AwaitKinds(t, "clonesets.apps.kruise.io")
	clitest.Create(t, sets, "default", scenes.Object(t, scenes.Web))
	t.Cleanup(func() {
		require.NoError(t, client.Resource(sets).Namespace("default").Delete(context.Background(), "web", metav1.DeleteOptions{}))
	})
}

func simulated(t *testing.T, kubeconfig string, args ...string) (f forecast.Report, output string, code cli.Code) {
	t.Helper()
	output, code = clitest.Commands{simulate.NewCommand}.Call(t, kubeconfig, append([]string{"simulate", "-o", "json"}, args...)...)
	if strings.HasPrefix(output, "{") {
		require.NoError(t, json.Unmarshal([]byte(output), &f))
	}
	return f, output, code
}

// The scene is read with the rights of the user: without the workload there is none, and what else is missing is told.
func TestASceneIsReadWithTheRightsOfTheUser(t *testing.T) {
	served(t)

	f, output, code := simulated(t, clitest.Administrator, "clone/web", "--set-image", "main=app:v2")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, 10, f.Added, "no operator has made the pods yet")
	assert.Empty(t, f.Assumed)
	live, err := clitest.Objects(t).Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
	assert.Equal(t, "app:v1", containers[0].(map[string]any)["image"], "nothing is written")

	invalid := written(t, scenes.Object(t, strings.ReplaceAll(scenes.Web, "replicas: 10", "replicas: many")).Object)
	_, output, code = simulated(t, clitest.Administrator, "-f", invalid)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "edit cloneset/web as a dry run: ")

	_, output, code = simulated(t, clitest.Nobody, "clone/web", "--set-image", "main=app:v2")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "read cloneset/web in namespace default: clonesets.apps.kruise.io \"web\" is forbidden")

	clitest.AllowNobody(t, map[string][]string{"get": {"clonesets"}, "list": {"pods", "controllerrevisions"}})
	f, output, code = simulated(t, clitest.Nobody, "clone/web", "--set-image", "main=app:v2")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, 10, f.Added)
	told := strings.Join(f.Assumed, "\n")
	for _, text := range []string{
		"nodes cannot be read, and each pod is taken to find a node: ", "claims cannot be read, and pods are taken to have none: ",
		"resource quotas cannot be read", "PodDisruptionBudgets cannot be read", "the edit could not be validated by a dry run: ",
	} {
		assert.Contains(t, told, text)
	}
}

// A manifest of a workload that does not exist is played as its creation.
func TestACreationIsPlayed(t *testing.T) {
	served(t)
	manifest := scenes.Object(t, strings.ReplaceAll(scenes.Web, "name: web, namespace", "name: other, namespace"))
	f, output, code := simulated(t, clitest.Administrator, "-f", written(t, manifest.Object))
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, []any{"other", 10}, []any{f.Name, f.Added})
	_, output, code = simulated(t, clitest.Administrator, "clone/other")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, `clonesets.apps.kruise.io "other" not found`)
}

// An operator is played with its feature gates. A gate that this version does not know is named, and the defaults are played.
func TestFeatureGatesOfTheOperatorAreRead(t *testing.T) {
	served(t)
	managers := clitest.Objects(t).Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("flotilla-system")
	t.Cleanup(func() { // the next installation makes it without feature gates
		require.NoError(t, managers.Delete(context.Background(), "cloneset-manager", metav1.DeleteOptions{}))
	})
	for gates, assumed := range map[string]string{
		"InPlaceWorkloadVerticalScaling=false": "",
		"OfAnotherVersion=true":                "cloneset-manager has feature gates OfAnotherVersion=true, and the default ones are played: ",
	} {
		patch := fmt.Appendf(nil, `[{"op":"add","path":"/spec/template/spec/containers/0/args","value":["--feature-gates=%s"]}]`, gates)
		_, err := managers.Patch(t.Context(), "cloneset-manager", types.JSONPatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
		f, output, code := simulated(t, clitest.Administrator, "clone/web", "--set-image", "main=app:v2")
		require.Equal(t, cli.Done, code, output)
		assert.Contains(t, strings.Join(f.Assumed, "\n"), assumed)
		assert.Equal(t, assumed == "", len(f.Assumed) == 0, f.Assumed)
	}
}

// stand stores an object of the cluster until the test ends.
func stand(t *testing.T, resource, namespace, manifest string) {
	t.Helper()
	objects := clitest.Objects(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(namespace)
	object, err := objects.Create(t.Context(), scenes.Object(t, manifest), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { // no controller removes the finalizers of volumes and claims
		free := []byte(`{"metadata": {"finalizers": null}}`)
		_, err := objects.Patch(context.Background(), object.GetName(), types.MergePatchType, free, metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, objects.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}))
	})
}

// The volume of a claim keeps pods away from the only node.
func TestVolumesAreReadWithTheRightsOfTheUser(t *testing.T) {
	served(t)
	stand(t, "nodes", "", "{apiVersion: v1, kind: Node, metadata: {name: here}}")
	stand(t, "persistentvolumes", "", `
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  accessModes: [ReadWriteMany]
  capacity: {storage: 1Gi}
  local: {path: /data}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [there]}]}]}}
`)
	stand(t, "persistentvolumeclaims", "default", `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: data, resources: {requests: {storage: 1Gi}}}
`)
	manifest := scenes.Object(t, scenes.Web)
	for field, value := range map[string]any{
		"tolerations": map[string]any{"operator": "Exists"},
		"volumes":     map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "data"}},
	} {
		require.NoError(t, unstructured.SetNestedSlice(manifest.Object, []any{value}, "spec", "template", "spec", field))
	}
	file := written(t, manifest.Object)

	f, output, code := simulated(t, clitest.Administrator, "-f", file)
	assert.Equal(t, cli.NotSo, code, output)
	assert.Contains(t, f.Message, "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity")
	assert.Empty(t, f.Assumed)

	clitest.AllowNobody(t, map[string][]string{"get": {"clonesets"}, "list": {"pods", "controllerrevisions", "persistentvolumeclaims", "nodes"}})
	f, output, code = simulated(t, clitest.Nobody, "-f", file)
	assert.Equal(t, cli.Done, code, output)
	assert.Contains(t, strings.Join(f.Assumed, "\n"), "persistent volumes cannot be read, and each is taken to be mountable on all nodes: ")
}
