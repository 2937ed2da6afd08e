package takeover_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

const (
	listKey      = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
	furtherKinds = `{"workloads":[{"Group":"example.io","Kind":"GameServerSet"}]}`
	copyOfList   = "ConfigMap flotilla-system/kruise-configuration"
)

// listOfOld makes the list of further kinds of OpenKruise's manager until the test ends, beside another setting.
func listOfOld(t *testing.T, kinds string) {
	t.Helper()
	client := clitest.Objects(t).Resource(configMaps).Namespace("kruise-system")
	_, err := client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "kruise-configuration"},
		"data": map[string]any{listKey: kinds, "other": "x"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, client.Delete(context.WithoutCancel(t.Context()), "kruise-configuration", metav1.DeleteOptions{}))
	})
}

// listOfFlotilla returns the list in Flotilla's namespace, and whether there is a ConfigMap.
func listOfFlotilla(t *testing.T) (data map[string]string, there bool) {
	t.Helper()
	found, err := clitest.Objects(t).Resource(configMaps).Namespace("flotilla-system").Get(t.Context(), "kruise-configuration", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	require.NoError(t, err)
	data, _, _ = unstructured.NestedStringMap(found.Object, "data")
	return data, true
}

func writeList(t *testing.T, namespace, patch string) {
	t.Helper()
	_, err := clitest.Objects(t).Resource(configMaps).Namespace(namespace).
		Patch(t.Context(), "kruise-configuration", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	require.NoError(t, err)
}

// The copy of the list goes with the way back, and each takeover copies the list of its time. What somebody else has written
// into it stays.
func TestTheListOfFurtherKindsIsThatOfOpenKruise(t *testing.T) {
	clitest.NeedsServer(t)
	manager(t)
	account(t)
	t.Cleanup(func() { withoutCRD(t, "workloadspreads.apps.kruise.io") })
	t.Cleanup(func() {
		err := clitest.Objects(t).Resource(configMaps).Namespace("flotilla-system").
			Delete(context.WithoutCancel(t.Context()), "kruise-configuration", metav1.DeleteOptions{})
		assert.True(t, err == nil || apierrors.IsNotFound(err), err)
	})
	listOfOld(t, furtherKinds)
	run := func(args ...string) string {
		t.Helper()
		output, code := call(t, clitest.Administrator, append([]string{"takeover", "spread", "--wait=false", "--settle=0", "--timeout=10m"}, args...)...)
		require.Equal(t, cli.Done, code, output)
		return output
	}
	run()
	data, _ := listOfFlotilla(t)
	assert.Equal(t, map[string]string{listKey: furtherKinds}, data)
	run("--undo")
	_, there := listOfFlotilla(t)
	assert.False(t, there, "nothing reads it, and the next takeover must not find it")

	writeList(t, "kruise-system", `{"data": {"`+listKey+`": "{\"workloads\":[]}"}}`)
	run()
	data, _ = listOfFlotilla(t)
	assert.Equal(t, map[string]string{listKey: `{"workloads":[]}`}, data)
	writeList(t, "kruise-system", `{"data": {"`+listKey+`": null}}`)
	run()
	_, there = listOfFlotilla(t)
	assert.False(t, there, "a copy follows its original while both are there")

	writeList(t, "kruise-system", `{"data": {"`+listKey+`": "{}"}}`)
	run()
	writeList(t, "flotilla-system", `{"data": {"mine": "y"}}`)
	run("--undo")
	data, _ = listOfFlotilla(t)
	assert.Equal(t, map[string]string{"mine": "y"}, data, "other settings stay")

	run()
	writeList(t, "flotilla-system", `{"data": {"`+listKey+`": "{\"mine\":true}"}}`)
	output := run("--undo")
	assert.Contains(t, output, copyOfList+" stays, because its list "+listKey+" was changed after the takeover; the next takeover uses it\n")
	run()
	data, _ = listOfFlotilla(t)
	assert.Equal(t, map[string]string{listKey: `{"mine":true}`, "mine": "y"}, data, "a list that a person wrote stays")
	run("--undo")
}
