package install_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

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
	clitest.Create(t, roles, "", copied)
	t.Cleanup(func() {
		require.NoError(t, client.Resource(roles).Delete(context.Background(), copied.GetName(), metav1.DeleteOptions{}))
	})

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
	assert.Contains(t, output, "statefulset: the operator was not installed\n")
}

// An object with a finalizer cannot go without its operator: that is told, and its CRD is not deleted into a wait without end.
func TestObjectsThatTheOperatorHolds(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	output, code := call(t, clitest.Administrator, "install", "statefulset", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	clitest.WithoutWebhooks(t)
	statefulSets := schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "statefulsets"}
	clitest.AwaitKinds(t, "statefulsets.apps.kruise.io")
	stored := client.Resource(statefulSets)
	inDefault := stored.Namespace("default")
	for name, finalizer := range map[string]string{"mine": "apps.kruise.io/deletion-protection", "theirs": "example.io/backup"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
			"metadata": map[string]any{"name": name, "finalizers": []any{finalizer}},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": name}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app"}}},
				},
			},
		}}
		clitest.Create(t, statefulSets, "default", object)
	}
	const told = "statefulsets.apps.kruise.io: 1 object has a finalizer that only the operator removes: default/mine. "

	output, code = call(t, clitest.Administrator, "uninstall", "statefulset", "--dry-run", "--delete-crds")
	assert.Equal(t, cli.Failed, code, output)
	assert.Contains(t, output, "statefulsets.apps.kruise.io: 2 objects and their pods would be deleted\n")
	output, code = call(t, clitest.Administrator, "uninstall", "statefulset", "--delete-crds", "--yes")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, told+"Their deletion would wait forever, because operator statefulset is not available: run flotilla install statefulset first")
	output, code = call(t, clitest.Administrator, "uninstall", "statefulset")
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, output, told+"Until the operator is installed again, the deletion of these objects and of their namespaces waits\n")

	for _, name := range []string{"mine", "theirs"} {
		_, err := inDefault.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	output, code = call(t, clitest.Administrator, "uninstall", "statefulset", "--delete-crds", "--dry-run")
	assert.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "statefulset CRDs: 1 object would be deleted: CustomResourceDefinition statefulsets.apps.kruise.io (")
	collected := collectGarbage(t, stored)
	output, code = call(t, clitest.Administrator, "uninstall", "statefulset", "--delete-crds", "--yes")
	require.Equal(t, cli.Done, code, output)
	assert.ElementsMatch(t, []string{"default/mine", "default/theirs"}, collected())
}

// What only an operator would tidy up, and what waits for it, is told before it goes.
func TestWhatAnOperatorLeaves(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	output, code := call(t, clitest.Administrator, "install", "jobs", "daemon", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	create := func(resource schema.GroupVersionResource, namespace, text string) {
		object := &unstructured.Unstructured{}
		require.NoError(t, object.UnmarshalJSON([]byte(text)))
		clitest.Create(t, resource, namespace, object)
	}
	clitest.WithoutWebhooks(t)
	create(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "",
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kruise-daemon-config"}}`)
	create(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "kruise-daemon-config",
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "copy-123456", "labels": {"imagepulljobs.kruise.io/source-uid": "1"}}}`)
	create(schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "default",
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "left"}, "spec": {"containers": [{"name": "app", "image": "app", "env": [
			{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": {"name": "left-barrier", "key": "p_0"}}}]}]}}`)

	output, code = call(t, clitest.Administrator, "uninstall", "jobs", "daemon", "--dry-run")

	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "pods: 1 wait behind a launch barrier, and their next containers start only when daemon is installed again: default/left\n")
	assert.Contains(t, output, "secrets: 1 copies of pull secrets stay in namespace kruise-daemon-config: copy-123456. To have them deleted, "+
		"delete their ImagePullJobs while the operator runs. Without it: kubectl -n kruise-daemon-config delete secrets -l imagepulljobs.kruise.io/source-uid\n")
	require.NoError(t, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default").Delete(t.Context(), "left", metav1.DeleteOptions{}))
	require.NoError(t, client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("kruise-daemon-config").
		Delete(t.Context(), "copy-123456", metav1.DeleteOptions{}))
	remove(t, "jobs", "daemon")
}

// Objects that a client creates again and again are told, and their CRD stays with them.
func TestObjectsThatComeBack(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	output, code := call(t, clitest.Administrator, "install", "spread", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	clitest.WithoutWebhooks(t)
	spreads := schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "workloadspreads"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread", "metadata": map[string]any{"generateName": "again-"},
				"spec": map[string]any{
					"targetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
					"subsets":   []any{map[string]any{"name": "a", "maxReplicas": int64(1)}},
				},
			}}
			_, _ = client.Resource(spreads).Namespace("default").Create(ctx, object, metav1.CreateOptions{}) // the kind goes with the test
			return false, nil
		})
	}()
	collected := collectGarbage(t, client.Resource(spreads))
	require.NoError(t, apply.Await(t.Context(), 5*time.Minute, func(string) {}, func(ctx context.Context) (bool, string, error) {
		list, err := client.Resource(spreads).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) > 0, "no object was created", err
	}))

	output, code = call(t, clitest.Administrator, "uninstall", "spread", "--delete-crds", "--yes", "--timeout", "10m")

	stop()
	<-ended
	assert.Equal(t, cli.Failed, code)
	assert.Regexp(t, `objects? (was|were) created again after the deletion, such as WorkloadSpread default/again-\w+: stop the client that creates them`, output)
	_, err := client.Resource(definitions).Get(t.Context(), "workloadspreads.apps.kruise.io", metav1.GetOptions{})
	require.NoError(t, err, "the CRD stays")
	output, code = call(t, clitest.Administrator, "uninstall", "spread", "--delete-crds", "--yes", "--timeout", "10m")
	assert.Equal(t, cli.Done, code, output)
	assert.NotEmpty(t, collected())
}
