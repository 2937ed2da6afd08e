package install_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla-project/flotilla/kustomize/apply"
	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/render"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

// These are resources that tests look at.
var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	roles       = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	sets        = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1beta1", Resource: "clonesets"}
	webhooks    = []schema.GroupVersionResource{
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	}
)

// One life of an installation: there are no nodes, so that the test plays the manager.
func TestInstallUpgradeAndUninstall(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)

	output, code := call(t, clitest.Administrator, "install", "cloneset", "--diff")
	assert.Equal(t, cli.NotSo, code, output)
	assert.Contains(t, output, "Deployment flotilla-system/cloneset-manager: new\n")
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--dry-run")
	require.Equal(t, cli.Done, code, output)
	assert.Regexp(t, `(?m)^cloneset CRDs: 1 of 1 objects would change \(`, output)
	_, err := client.Resource(deployments).Namespace(install.Namespace).Get(t.Context(), "cloneset-manager", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a dry run writes nothing")

	output, code = call(t, clitest.Administrator, "install", "cloneset", "--wait=false", "--registry", "registry.example")
	require.Equal(t, cli.Done, code, output)
	assert.Regexp(t, `(?m)^cloneset CRDs: 1 of 1 objects changed \(`, output)
	assert.Regexp(t, `(?m)^cloneset webhooks: 2 of 2 objects changed \(`, output)
	clitest.AwaitKinds(t, "clonesets.apps.kruise.io") // the command did not
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--registry", "registry.example", "--timeout", "1ms")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "error: install cloneset: not ready after 1ms: Deployment flotilla-system/cloneset-manager has no pod yet\n")
	playManager(t)

	output, code = call(t, clitest.Administrator, "install", "cloneset", "--registry", "registry.example", "--timeout", "10m")
	require.Equal(t, cli.Done, code, output)
	assert.Regexp(t, `(?m)^cloneset: ready \(`, output)
	assert.NotContains(t, output, "flotilla-system: ready", "a namespace is there or not")
	assert.NotContains(t, output, "objects changed", "what is installed is not written again")
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--registry", "registry.example", "--diff")
	assert.Equal(t, cli.Done, code, output)
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--diff", "--defaults")
	assert.Equal(t, cli.NotSo, code)
	image := "/flotilla/cloneset-manager:" + selected(t, "cloneset")[0].Version
	assert.Contains(t, output, fmt.Sprintf("%q -> %q", "registry.example"+image, "release.example"+image))

	label := func(version string) {
		_, err := client.Resource(definitions).Patch(t.Context(), "clonesets.apps.kruise.io", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"app.kubernetes.io/version":"`+version+`"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	label("v9.0.0")
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--wait=false")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "cloneset v9.0.0 is installed, and this command has v0.1.0")
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--wait=false", "--allow-downgrade")
	require.Equal(t, cli.Done, code, output)

	// The webhook of the test's manager does not answer.
	clitest.WithoutWebhooks(t)
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app"}}},
			},
		},
	}}
	clitest.Create(t, sets, "default", set)

	output, code = call(t, clitest.Administrator, "uninstall", "cloneset")
	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "cloneset: CRDs, their objects and all pods stay\n"+
		"clonesets.apps.kruise.io: until the operator is installed again, only requests in version v1beta1 succeed\n")
	_, err = client.Resource(deployments).Namespace(install.Namespace).Get(t.Context(), "cloneset-manager", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	_, err = client.Resource(roles).Get(t.Context(), "cloneset-manager", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	_, err = client.Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err, "objects stay")

	output, code = call(t, clitest.Administrator, "uninstall", "cloneset", "--delete-crds")
	assert.Equal(t, cli.Misused, code)
	assert.Contains(t, output, "clonesets.apps.kruise.io: 1 object and its pods would be deleted\n")
	_, err = client.Resource(sets).Namespace("default").Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err, "asked once only")

	collected := collectGarbage(t, client.Resource(sets))
	output, code = call(t, clitest.Administrator, "uninstall", "cloneset", "--delete-crds", "--yes", "--timeout", "10m")
	require.Equal(t, cli.Done, code, output)
	assert.Equal(t, []string{"default/web"}, collected(), "while the API server serves the kind")
	assert.Regexp(t, `(?m)^cloneset objects: 1 object and its pods deleted \(`, output)
	_, err = client.Resource(definitions).Get(t.Context(), "clonesets.apps.kruise.io", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err))
}

// While a new operator starts, its webhooks reject nothing; they are enforced when it is ready.
func TestNewWebhooksRejectNothingUntilTheOperatorIsReady(t *testing.T) {
	clitest.NeedsServer(t)
	t.Cleanup(func() { remove(t, "cloneset", "--delete-crds", "--yes") })
	client := clitest.Objects(t)
	expect := func(policy string, marked bool) {
		for i, name := range []string{"cloneset-mutating", "cloneset-validating"} {
			live, err := client.Resource(webhooks[i]).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			list, _, _ := unstructured.NestedSlice(live.Object, "webhooks")
			assert.Equal(t, policy, list[0].(map[string]any)["failurePolicy"], name)
			assert.Equal(t, marked, apply.IsLenient(live), name)
			if !marked {
				bundle, _, _ := unstructured.NestedString(list[0].(map[string]any), "clientConfig", "caBundle")
				assert.NotEmpty(t, bundle, "%s trusts its manager", name)
			}
		}
	}
	output, code := call(t, clitest.Administrator, "install", "cloneset", "--wait=false", "--registry", "registry.example")
	require.Equal(t, cli.Done, code, output)
	playManager(t)
	for i, name := range []string{"cloneset-mutating", "cloneset-validating"} {
		require.NoError(t, client.Resource(webhooks[i]).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}

	output, code = call(t, clitest.Administrator, "install", "cloneset", "--timeout", "5s")
	assert.Equal(t, cli.Failed, code, output)
	assert.Regexp(t, `not ready after 5s: \w+WebhookConfiguration cloneset-`, output)
	expect("Ignore", true)
	playManager(t)
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--timeout", "10m")
	require.Equal(t, cli.Done, code, output)
	expect("Fail", false)
	output, code = call(t, clitest.Administrator, "install", "cloneset", "--diff")
	assert.Equal(t, cli.Done, code, output)
}

// playManager does what the Deployment's controller and the manager would do.
func playManager(t *testing.T) {
	t.Helper()
	client := clitest.Objects(t)
	manager, err := client.Resource(deployments).Namespace(install.Namespace).Get(t.Context(), "cloneset-manager", metav1.GetOptions{})
	require.NoError(t, err)
	manager.Object["status"] = map[string]any{
		"observedGeneration": manager.GetGeneration(),
		"replicas":           int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1), "readyReplicas": int64(1),
	}
	_, err = client.Resource(deployments).Namespace(install.Namespace).UpdateStatus(t.Context(), manager, metav1.UpdateOptions{})
	require.NoError(t, err)
	bundle := authority(t)
	patch := func(resource schema.GroupVersionResource, name, path string) {
		_, err := client.Resource(resource).Patch(t.Context(), name, types.JSONPatchType,
			[]byte(`[{"op": "add", "path": "`+path+`/clientConfig/caBundle", "value": "`+bundle+`"}]`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	patch(webhooks[0], "cloneset-mutating", "/webhooks/0")
	patch(webhooks[1], "cloneset-validating", "/webhooks/0")
	patch(definitions, "clonesets.apps.kruise.io", "/spec/conversion/webhook")
}

// authority returns the certificate of a CA, as caBundle has it.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// Who may write roles but not grant what they grant is told so before anything is written, and so is who may not delete.
func TestRightsAreKnownAhead(t *testing.T) {
	clitest.NeedsServer(t)
	all := []string{"*"}
	clitest.AllowNobody(t, map[string][]string{"get": all, "list": all, "create": all, "patch": all})

	output, code := call(t, clitest.Nobody, "install", "cloneset", "--wait=false")

	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "missing permission: to grant the permissions of ClusterRole cloneset-manager: ")
	_, err := clitest.Objects(t).Resource(definitions).Get(t.Context(), "clonesets.apps.kruise.io", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "nothing is written")

	output, code = call(t, clitest.Administrator, "install", "cloneset", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	t.Cleanup(func() { remove(t, "cloneset", "--delete-crds", "--yes") })
	output, code = call(t, clitest.Nobody, "uninstall", "cloneset")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "missing permission: delete deployments.apps in namespace flotilla-system\n")
	assert.Contains(t, output, "missing permission: delete clusterroles.rbac.authorization.k8s.io\n")
	output, code = call(t, clitest.Nobody, "uninstall", "cloneset", "--delete-crds", "--yes")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "missing permission: delete clonesets.apps.kruise.io\n")
	assert.Contains(t, output, "missing permission: delete customresourcedefinitions.apiextensions.k8s.io\n")
	assert.Contains(t, output, "missing permission: delete deployments.apps in namespace flotilla-system\n", "all at once")
	_, err = clitest.Objects(t).Resource(webhooks[0]).Get(t.Context(), "cloneset-mutating", metav1.GetOptions{})
	assert.NoError(t, err, "nothing is deleted")
}

func TestErrorsSayWhatToDo(t *testing.T) {
	clitest.NeedsServer(t)
	var names []string
	for _, feature := range selected(t, catalog.All) {
		names = append(names, feature.Name)
	}
	known := strings.Join(names, ", ")
	cases := []struct {
		name, kubeconfig string
		args             []string
		code             cli.Code
		want             string
	}{
		{"no right", clitest.Nobody, []string{"install", "budget"}, cli.Failed, "\nmissing permission: create, patch deployments.apps in namespace flotilla-system\n"},
		{"no right to look", clitest.Nobody, []string{"uninstall", "budget"}, cli.Failed, "ask an administrator of the cluster for this permission"},
		{"a kind that is not served", clitest.Administrator, []string{"install", "budget", "--component", "prometheus"}, cli.Failed, "the cluster does not serve kind ServiceMonitor.monitoring.coreos.com: install its CRD, or omit the component"},
		{"a namespace that is not there", clitest.Administrator, []string{"install", "budget", "--only-namespace", "nowhere"}, cli.Failed, "namespace nowhere not found; to create it: kubectl create namespace nowhere"},
		{"no such feature", clitest.Administrator, []string{"install", "sidecarset"}, cli.Misused, `unknown feature "sidecarset": use ` + known},
		{"no feature", clitest.Administrator, []string{"install"}, cli.Misused, "name a feature: " + known + ", or all for all of them"},
		{"nothing to remove", clitest.Administrator, []string{"uninstall", "budget"}, cli.Done, "budget: the operator was not installed\n"},
		{"a dry run of nobody", clitest.Administrator, []string{"install", "budget", "--dry-run=maybe"}, cli.Misused, `invalid --dry-run "maybe": use none, client or server`},
		{"yes to nothing", clitest.Administrator, []string{"uninstall", "budget", "--yes"}, cli.Misused, "--yes can only be used with --delete-crds"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			output, code := call(t, c.kubeconfig, c.args...)
			assert.Equal(t, c.code, code)
			assert.Contains(t, output, c.want)
			assert.NotContains(t, output, " 0 objects")
		})
	}
}

// Who has installed with kubectl goes on with the command; what kubectl has set to something else is theirs.
func TestInstallOverWhatKubectlHasApplied(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	const kubectl = "kubectl-client-side-apply"
	t.Cleanup(func() { remove(t, "spread") })
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": install.Namespace},
	}}
	if _, err := client.Resource(namespaces).Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		require.True(t, apierrors.IsAlreadyExists(err), err)
	}
	accounts := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(install.Namespace)
	account := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{
			"name": "spread-manager", "labels": map[string]any{"app.kubernetes.io/managed-by": "kustomize", "app.kubernetes.io/version": "v0.0.1"},
		},
	}}
	_, err := accounts.Create(t.Context(), account, metav1.CreateOptions{FieldManager: kubectl})
	require.NoError(t, err)

	output, code := call(t, clitest.Administrator, "install", "spread", "--wait=false", "--dry-run")
	require.Equal(t, cli.Done, code, output)
	output, code = call(t, clitest.Administrator, "install", "spread", "--wait=false")
	require.Equal(t, cli.Done, code, output)
	stored, err := accounts.Get(t.Context(), "spread-manager", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "flotilla", stored.GetLabels()["app.kubernetes.io/managed-by"])

	_, err = client.Resource(deployments).Namespace(install.Namespace).Patch(t.Context(), "spread-manager", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"kustomize"}},"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: kubectl})
	require.NoError(t, err)
	const conflict = "apply Deployment flotilla-system/spread-manager: another tool owns some of its fields; to overwrite them, add --force-conflicts"
	output, code = call(t, clitest.Administrator, "install", "spread", "--diff")
	assert.Equal(t, cli.NotSo, code)
	assert.Contains(t, output, conflict)
	assert.Contains(t, output, "spec.replicas: 3 -> 1")
	output, _ = call(t, clitest.Administrator, "install", "spread", "--diff", "--force-conflicts")
	assert.NotContains(t, output, conflict)
	output, code = call(t, clitest.Administrator, "install", "spread", "--wait=false")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, conflict)
	assert.Contains(t, output, ".spec.replicas")
	manager, err := client.Resource(deployments).Namespace(install.Namespace).Get(t.Context(), "spread-manager", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "kustomize", manager.GetLabels()["app.kubernetes.io/managed-by"], "nothing of it was written")
	output, code = call(t, clitest.Administrator, "install", "spread", "--wait=false", "--force-conflicts")
	assert.Equal(t, cli.Done, code, output)
}

// Manifests set nothing that the server stores as something else: to the server that is another value, which another tool has set.
func TestInstallOverOverlaysThatKubectlHasApplied(t *testing.T) {
	clitest.NeedsServer(t)
	client := clitest.Objects(t)
	folders, err := render.Folders(os.DirFS(filepath.Join("..", "..")))
	require.NoError(t, err)
	tree, err := render.NewTree(folders)
	require.NoError(t, err)
	var renderer render.Renderer
	features := []string{"budget", "daemon"}
	t.Cleanup(func() { remove(t, features...) })
	for _, feature := range features {
		manifests, err := renderer.Build(tree, "kustomize/overlays/"+feature)
		require.NoError(t, err)
		manifests = bytes.ReplaceAll(manifests, []byte("image: flotilla/"), []byte("image: "+catalog.Registry+"/flotilla/")) // as in the files of a release
		for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096); ; {
			object := &unstructured.Unstructured{}
			if err := documents.Decode(object); errors.Is(err, io.EOF) {
				break
			} else {
				require.NoError(t, err)
			}
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			_, err := client.Resource(resource).Namespace(object.GetNamespace()).Apply(t.Context(), object.GetName(), object,
				metav1.ApplyOptions{FieldManager: "kubectl", Force: true})
			require.NoError(t, err, object.GetName())
		}
	}

	output, code := call(t, clitest.Administrator, append([]string{"install", "--wait=false"}, features...)...)

	require.Equal(t, cli.Done, code, output)
	output, code = call(t, clitest.Administrator, append([]string{"install", "--diff"}, features...)...)
	assert.Equal(t, cli.Done, code, output)
}

// A cluster is not needed to see the manifests.
func TestManifestsCanBePrinted(t *testing.T) {
	output, code := call(t, "/nonexistent", "install", "spread", "--dry-run=client", "--registry", "registry.example")

	require.Equal(t, cli.Done, code, output)
	assert.Contains(t, output, "image: registry.example/flotilla/spread-manager:"+selected(t, "spread")[0].Version+"\n")
	assert.Contains(t, output, "---\napiVersion: v1\nkind: Namespace\n")
}
