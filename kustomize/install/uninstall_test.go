package install_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

func TestRemovable(t *testing.T) {
	role := func(name, feature, manager string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("rbac.authorization.k8s.io/v1")
		o.SetKind("ClusterRole")
		o.SetName(name)
		if feature != "" {
			o.SetLabels(map[string]string{install.FeatureLabel: feature})
		}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}})
		return o
	}
	older, mine, byKubectl := role("older", "jobs", apply.Manager), role("mine", "jobs", apply.Manager), role("kubectl", "", "kubectl")
	all := role("all", "", apply.Manager)
	all.SetLabels(map[string]string{"app.kubernetes.io/name": "flotilla"})

	found := install.Removable(selected(t, "jobs")[0],
		[]*unstructured.Unstructured{older, mine, role("copied", "jobs", "kubectl")},
		[]*unstructured.Unstructured{mine, byKubectl, role("moved", "daemon", apply.Manager), all})

	assert.Equal(t, []*unstructured.Unstructured{older, mine, byKubectl}, found)
}

// What another version of the manifests had is removed with the feature, and what a user copied stays.
func TestUninstallRemovesWhatWasInstalled(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	output, code := call(t, clitest.Administrator, "install", "statefulset", "--wait=false", "--component", "flowcontrol")
	require.Equal(t, cli.Done, code, output)
	older := []byte(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "statefulset-older", "labels": {"` +
		install.FeatureLabel + `": "statefulset"}}}`)
	_, err := client.Resource(roles).Patch(t.Context(), "statefulset-older", types.ApplyPatchType, older, metav1.PatchOptions{FieldManager: apply.Manager})
	require.NoError(t, err)
	copied := &unstructured.Unstructured{}
	require.NoError(t, copied.UnmarshalJSON(older))
	copied.SetName("statefulset-copied")
	_, err = client.Resource(roles).Create(t.Context(), copied, metav1.CreateOptions{})
	require.NoError(t, err)

	output, code = call(t, clitest.Administrator, "uninstall", "statefulset", "--dry-run")
	require.Equal(t, cli.Done, code, output)
	assert.Regexp(t, `(?m)^statefulset RBAC: \d+ objects would be deleted: .*ClusterRole statefulset-older`, output)
	output, code = call(t, clitest.Administrator, "uninstall", "statefulset")
	require.Equal(t, cli.Done, code, output)

	for name, there := range map[string]bool{"statefulset-older": false, "statefulset-copied": true, "statefulset-manager": false} {
		_, err = client.Resource(roles).Get(t.Context(), name, metav1.GetOptions{})
		assert.Equal(t, !there, apierrors.IsNotFound(err), name)
	}
	output, code = call(t, clitest.Administrator, "uninstall", "statefulset")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "statefulset: there was no operator\n")
}
