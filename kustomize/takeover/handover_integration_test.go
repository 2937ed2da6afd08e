package takeover_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// An operator that does not start costs nobody a controller: until it would lead, OpenKruise keeps all that it has.
func TestAnOperatorThatDoesNotStartChangesNothing(t *testing.T) {
	clitest.NeedsServer(t)
	old := oldManager(t)
	openKruise(t, old, "1.7.3")
	t.Cleanup(func() { withoutOpenKruise(t) })
	require.NoError(t, old.Pass(t.Context()))
	before := everything(t)

	output, code := call(t, clitest.Administrator, "doctor")
	assert.Equal(t, cli.Done, code)
	assert.Contains(t, output, "no operator is installed, but OpenKruise is. To take over its kinds, begin with: flotilla takeover all --dry-run\n")
	for _, args := range [][]string{nil, {"--diff"}, {"--dry-run"}, {"--force-conflicts"}} {
		output, code := call(t, clitest.Administrator, append([]string{"install", "cloneset", "--wait=false"}, args...)...)
		assert.Equal(t, cli.Failed, code, output)
		assert.Contains(t, output, "OpenKruise manages the kinds of cloneset: ")
		assert.Contains(t, output, "; flotilla takeover cloneset\n")
		assert.NotContains(t, output, "--force-conflicts")
	}
	assert.Equal(t, before, everything(t))

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--settle=0", "--timeout=1s")

	assert.Equal(t, cli.Failed, code, output)
	assert.Contains(t, output, "start the operator: not ready after 1s: Deployment flotilla-system/cloneset-manager has no pod yet; "+
		"run the command again, or go back with: flotilla takeover cloneset --undo\n")
	assert.Equal(t, before, everything(t))
	require.NoError(t, touch(t, old, pods, "web-2f49m"), "the old manager still works")
	before = everything(t)
	output, code = call(t, clitest.Administrator, "status")
	assert.Equal(t, cli.NotSo, code)
	assert.Contains(t, output, "its takeover from OpenKruise was interrupted; last step: start the operator\n")
	output, _ = call(t, clitest.Administrator, "doctor")
	assert.Contains(t, output, "  To continue: flotilla takeover cloneset. To go back: flotilla takeover cloneset --undo\n")

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, before, everything(t))
	output, _ = call(t, clitest.Administrator, "status")
	assert.NotContains(t, output, "was interrupted")
	assert.Regexp(t, `cloneset +- +not installed +OpenKruise manages its kinds: flotilla takeover cloneset\n`, output)
}

// Once a pod runs and would lead, OpenKruise is cut off. A run that ends then is known, with the step that it was at.
func TestARunThatIsCutOffIsKnown(t *testing.T) {
	clitest.NeedsServer(t)
	old := oldManager(t)
	openKruise(t, old, "1.8.4")
	t.Cleanup(func() { withoutOpenKruise(t) })
	require.NoError(t, old.Pass(t.Context()))
	before := everything(t)
	_, code := call(t, clitest.Administrator, "takeover", "cloneset", "--settle=0", "--timeout=1s", "--registry=registry.example")
	require.Equal(t, cli.Failed, code)
	startManager(t)

	output, code := reaches(t, "install: not ready", "takeover", "cloneset", "--settle=0")

	assert.Equal(t, cli.Failed, code, "the operator never gets ready here")
	assert.Contains(t, output, "cloneset keeps --registry=registry.example")
	assert.Regexp(t, `(?m)^cloneset: remove its webhooks: done \(\d+\.\d s\)$`, output)
	assert.True(t, apierrors.IsForbidden(touch(t, old, pods, "web-2f49m")))
	output, code = call(t, clitest.Administrator, "status")
	assert.Equal(t, cli.NotSo, code)
	assert.Contains(t, output, "its takeover from OpenKruise was interrupted; last step: install\n")
	catalog.Registry = ""
	t.Cleanup(func() { catalog.Registry = "release.example" })
	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "spread", "--settle=0")
	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, output, "error: spread: this command was built from source and has no default registry")
	assert.NotContains(t, output, "done", "nothing is begun that the next feature ends")
	for _, args := range [][]string{nil, {"--dry-run"}, {"--delete-crds"}} {
		output, code := call(t, clitest.Administrator, append([]string{"uninstall", "cloneset"}, args...)...)
		assert.Equal(t, cli.Failed, code)
		assert.Contains(t, output, "without the operator, its kinds have no controller. To give it back and remove the operator: flotilla takeover cloneset --undo\n")
	}

	output, code = call(t, clitest.Administrator, "takeover", "cloneset", "--undo", "--settle=0", "--timeout=10m")
	require.Equal(t, cli.Done, code, output)
	eventually(t, func() error { return touch(t, old, pods, "web-2f49m") })
	require.NoError(t, old.Pass(t.Context()))
	after := everything(t)
	for name := range before {
		if name != "Pod web-2f49m" {
			assert.Equal(t, before[name], after[name], name)
		}
	}
}

// startManager plays a pod of the operator, which has made its certificates and waits for its webhooks.
func startManager(t *testing.T) {
	t.Helper()
	client := clitest.Objects(t)
	manager, err := client.Resource(deployments).Namespace(install.Namespace).Get(t.Context(), "cloneset-manager", metav1.GetOptions{})
	require.NoError(t, err)
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "cloneset-manager-1", "namespace": install.Namespace, "labels": map[string]any{"app.kubernetes.io/name": "cloneset-manager"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "manager", "image": apply.ImageOf(manager)}}},
		"status": map[string]any{"containerStatuses": []any{map[string]any{
			"name": "manager", "image": apply.ImageOf(manager), "imageID": "", "ready": false, "restartCount": int64(0), "state": map[string]any{"running": map[string]any{}},
		}}},
	}}
	require.NoError(t, create(t, client, pod))
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"tls.crt": "YQ=="},
		"metadata": map[string]any{"name": "cloneset-webhook-certs", "namespace": install.Namespace},
	}}
	require.NoError(t, create(t, client, secret))
	t.Cleanup(func() {
		_ = client.Resource(pods).Namespace(install.Namespace).Delete(context.Background(), "cloneset-manager-1", metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
}

// withoutOpenKruise removes what openKruise has created, for the next test.
func withoutOpenKruise(t *testing.T) {
	t.Helper()
	client, ctx := clitest.Objects(t), context.Background()
	for _, file := range []string{"testdata/web.yaml", "../test/openkruise/webhooks.yaml"} {
		for _, object := range decode(t, file) {
			err := client.Resource(resourceOf[object.GetKind()]).Namespace(object.GetNamespace()).
				Delete(ctx, object.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			assert.True(t, err == nil || apierrors.IsNotFound(err), err)
		}
	}
	err := client.Resource(definitions).Delete(ctx, "clonesets.apps.kruise.io", metav1.DeleteOptions{})
	assert.True(t, err == nil || apierrors.IsNotFound(err), err)
	require.NoError(t, apply.Await(ctx, 5*time.Minute, func(string) {}, func(ctx context.Context) (bool, string, error) {
		_, err := client.Resource(definitions).Get(ctx, "clonesets.apps.kruise.io", metav1.GetOptions{})
		return apierrors.IsNotFound(err), "the CRD is still there", nil
	}))
}
