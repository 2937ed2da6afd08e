package takeover_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// A kind without a scale that no role names is read by OpenKruise's manager, and not by the manager of budgets.
func TestADryRunNamesBudgetsThatWillProtectNothing(t *testing.T) {
	clitest.NeedsServer(t)
	old, client := oldManager(t), clitest.Objects(t)
	openKruise(t, old, "1.9.0")
	t.Cleanup(func() { withoutOpenKruise(t) })
	definition, err := old.CRD("1.9.0", "podunavailablebudgets")
	require.NoError(t, err)
	_, err = client.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, client.Resource(definitions).Delete(context.WithoutCancel(t.Context()), definition.GetName(), metav1.DeleteOptions{}))
	})
	resource := schema.GroupVersionResource{Group: "policy.kruise.io", Version: "v1alpha1", Resource: "podunavailablebudgets"}
	stored := client.Resource(resource).Namespace("default")
	eventually(t, func() error {
		_, err := stored.List(t.Context(), metav1.ListOptions{})
		return err
	})
	for name, kind := range map[string]string{"history": "ControllerRevision", "web": "Deployment"} {
		_, err := stored.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "policy.kruise.io/v1alpha1", "kind": "PodUnavailableBudget", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": "web"}, "maxUnavailable": int64(1)},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, stored.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
		})
	}

	output, code := call(t, clitest.Administrator, "takeover", "budget", "--dry-run")

	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "PodUnavailableBudget default/history will protect no pod: the operator has no permission to read kind ControllerRevision.apps.")
	assert.NotContains(t, output, "default/web")

	for resource, fields := range map[string]map[string]any{
		"clusterroles": {"kind": "ClusterRole", "rules": []any{map[string]any{
			"apiGroups": []any{"apps"}, "resources": []any{"controllerrevisions"}, "verbs": []any{"get", "list", "watch"},
		}}},
		"clusterrolebindings": {
			"kind":     "ClusterRoleBinding",
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "by-hand"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "budget-manager", "namespace": "flotilla-system"}},
		},
	} {
		role := &unstructured.Unstructured{Object: fields}
		role.SetAPIVersion("rbac.authorization.k8s.io/v1")
		role.SetName("by-hand")
		roles := client.Resource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource})
		_, err := roles.Create(t.Context(), role, metav1.CreateOptions{})
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, roles.Delete(context.WithoutCancel(t.Context()), "by-hand", metav1.DeleteOptions{}))
		})
	}
	eventually(t, func() error { // the server has seen the role
		output, _ := call(t, clitest.Administrator, "takeover", "budget", "--dry-run")
		if strings.Contains(output, "will protect no pod") {
			return errors.New(output)
		}
		return nil
	})
}
