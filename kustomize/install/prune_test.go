package install_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// An object has the label of its feature exactly if no other feature has the object, and its kind can be pruned.
func TestWhoseObjectsAre(t *testing.T) {
	features := map[string][]string{}
	label := map[string]string{}
	for _, feature := range selected(t, catalog.All) {
		settings := install.Everything(feature)
		settings.Components = append(install.Shared(), settings.Components...)
		objects, err := install.Manifests(feature, settings)
		require.NoError(t, err)
		for _, object := range objects {
			name := object.GroupVersionKind().String() + " " + apply.Describe(object)
			features[name] = append(features[name], feature.Name)
			label[name] = object.GetLabels()[install.FeatureLabel]
			if label[name] != "" && object.GetKind() != "CustomResourceDefinition" && object.GetKind() != "Namespace" {
				assert.Contains(t, install.Prunable(), object.GroupVersionKind(), name)
			}
		}
	}
	for name, of := range features {
		if len(of) > 1 {
			assert.Empty(t, label[name], name)
		} else {
			assert.Equal(t, of[0], label[name], name)
		}
	}
	for _, kind := range install.Prunable() {
		assert.NotContains(t, []string{"CustomResourceDefinition", "Namespace"}, kind.Kind)
	}
}

func TestStale(t *testing.T) {
	object := func(kind schema.GroupVersionKind, name, feature, manager string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetName(name)
		o.SetLabels(map[string]string{install.FeatureLabel: feature})
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}})
		return o
	}
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	old := object(role, "old", "jobs", apply.Manager)
	live := []*unstructured.Unstructured{
		old,
		object(role, "wanted", "jobs", apply.Manager),
		object(role, "moved", "jobs", apply.Manager),
		object(role, "of another feature", "cloneset", apply.Manager),
		object(role, "copied by a user", "jobs", "kubectl"),
		object(role, "shared", "", apply.Manager),
		object(crd, "kinds", "jobs", apply.Manager),
		object(namespace, "settings", "jobs", apply.Manager),
	}
	wanted := []*unstructured.Unstructured{object(role, "wanted", "jobs", ""), object(role, "moved", "cloneset", "")}

	assert.Equal(t, []*unstructured.Unstructured{old}, install.Stale("jobs", live, wanted))
	assert.Empty(t, install.Stale("flotilla-system", live, nil), "the namespace is no feature")
}

// A manager that is restricted to a namespace keeps no right in others, and nobody else loses one.
func TestWhatIsNotNeededAnyMoreGoes(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	for _, feature := range []string{"budget", "spread"} {
		output, code := call(t, clitest.Administrator, "install", feature, "--wait=false")
		require.Equal(t, cli.Done, code, output)
	}
	mine, err := client.Resource(roles).Get(t.Context(), "spread-manager", metav1.GetOptions{})
	require.NoError(t, err)
	copied := &unstructured.Unstructured{Object: map[string]any{"rules": mine.Object["rules"]}}
	copied.SetGroupVersionKind(mine.GroupVersionKind())
	copied.SetName("copied")
	copied.SetLabels(mine.GetLabels())
	clitest.Create(t, roles, "", copied)
	t.Cleanup(func() {
		require.NoError(t, client.Resource(roles).Delete(context.Background(), copied.GetName(), metav1.DeleteOptions{}))
	})

	output, code := call(t, clitest.Administrator, "install", "spread", "--only-namespace", "default", "--diff")
	assert.Equal(t, cli.NotSo, code, output)
	assert.Contains(t, output, "ClusterRoleBinding spread-manager: would be deleted\nClusterRole spread-manager: would be deleted\n")
	output, code = call(t, clitest.Administrator, "install", "spread", "--only-namespace", "default", "--dry-run")
	assert.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "spread leftovers: would be deleted: ClusterRoleBinding spread-manager, ClusterRole spread-manager (")
	_, err = client.Resource(roles).Get(t.Context(), "spread-manager", metav1.GetOptions{})
	require.NoError(t, err, "so far nothing is written")

	output, code = call(t, clitest.Administrator, "install", "spread", "--only-namespace", "default", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "spread leftovers: deleted: ClusterRoleBinding spread-manager, ClusterRole spread-manager (")
	_, err = client.Resource(roles).Get(t.Context(), "spread-manager", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	for _, name := range []string{"spread-manager-cluster", "budget-manager", "copied"} {
		_, err = client.Resource(roles).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err, name)
	}

	pods := func(count int64) {
		manager, err := client.Resource(deployments).Namespace(install.Namespace).Get(t.Context(), "spread-manager", metav1.GetOptions{})
		require.NoError(t, err)
		manager.Object["status"] = map[string]any{"replicas": count, "observedGeneration": manager.GetGeneration()}
		_, err = client.Resource(deployments).Namespace(install.Namespace).UpdateStatus(t.Context(), manager, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	pods(1)
	output, code = call(t, clitest.Administrator, "install", "spread", "--defaults", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "spread leftovers stay, because pods of the previous version may still run: RoleBinding default/spread-manager, Role default/spread-manager;")
	pods(0)
	output, code = call(t, clitest.Administrator, "install", "spread", "--defaults", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "spread leftovers: deleted: RoleBinding default/spread-manager, Role default/spread-manager (")
	output, code = call(t, clitest.Administrator, "uninstall", "budget", "spread")
	require.Equal(t, cli.Done, code, output)
}
