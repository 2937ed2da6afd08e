package charts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla-project/flotilla/kustomize/catalog"
	"github.com/flotilla-project/flotilla/kustomize/charts"
	"github.com/flotilla-project/flotilla/kustomize/cli"
	"github.com/flotilla-project/flotilla/kustomize/install"
	"github.com/flotilla-project/flotilla/kustomize/test/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }

// These are resources that tests look at.
func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// helm is Helm in a namespace of the cluster of the tests.
type helm struct {
	t       *testing.T
	cluster dynamic.Interface
	// authority is the CA that the operator writes.
	authority string
}

func (h helm) configuration() *action.Configuration {
	h.t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &clitest.Administrator
	flags.Namespace = new(catalog.Namespace)
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	require.NoError(h.t, configuration.Init(flags, catalog.Namespace, "secret"))
	return configuration
}

// install installs a chart under its own name.
func (h helm) install(name, given string, change ...func(*action.Install)) error {
	h.t.Helper()
	install := action.NewInstall(h.configuration())
	install.ReleaseName, install.Namespace, install.WaitStrategy = name, catalog.Namespace, kube.HookOnlyStrategy
	for _, each := range change {
		each(install)
	}
	_, err := install.RunWithContext(h.t.Context(), load(h.t, name), values(h.t, given))
	return err
}

func (h helm) upgrade(name, given string) {
	h.t.Helper()
	upgrade := action.NewUpgrade(h.configuration())
	upgrade.Namespace, upgrade.WaitStrategy = catalog.Namespace, kube.HookOnlyStrategy
	_, err := upgrade.RunWithContext(h.t.Context(), name, load(h.t, name), values(h.t, given))
	require.NoError(h.t, err)
}

func (h helm) rollback(name string, revision int) {
	h.t.Helper()
	rollback := action.NewRollback(h.configuration())
	rollback.Version, rollback.WaitStrategy = revision, kube.HookOnlyStrategy
	require.NoError(h.t, rollback.Run(name))
}

func (h helm) uninstall(name string) {
	h.t.Helper()
	uninstall := action.NewUninstall(h.configuration())
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	_, err := uninstall.Run(name)
	require.NoError(h.t, err)
}

func (h helm) get(of schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return h.cluster.Resource(of).Namespace(namespace).Get(h.t.Context(), name, metav1.GetOptions{})
}

func (h helm) replicas() int64 {
	h.t.Helper()
	deployment, err := h.get(resource("apps", "v1", "deployments"), catalog.Namespace, "cloneset-manager")
	require.NoError(h.t, err)
	replicas, _, err := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	require.NoError(h.t, err)
	return replicas
}

// trusted are what has a CA that the operator has written.
func trusted() map[string]schema.GroupVersionResource {
	const admission = "admissionregistration.k8s.io"
	return map[string]schema.GroupVersionResource{
		"cloneset-mutating":        resource(admission, "v1", "mutatingwebhookconfigurations"),
		"cloneset-validating":      resource(admission, "v1", "validatingwebhookconfigurations"),
		"clonesets.apps.kruise.io": resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
	}
}

// newAuthority returns a CA as objects have it.
func newAuthority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// writeAuthority writes the CA as the operator does.
func (h helm) writeAuthority() {
	h.t.Helper()
	for name, of := range trusted() {
		path := "/webhooks/0/clientConfig/caBundle"
		if of.Group == "apiextensions.k8s.io" {
			path = "/spec/conversion/webhook/clientConfig/caBundle"
		}
		_, err := h.cluster.Resource(of).Patch(h.t.Context(), name, types.JSONPatchType,
			fmt.Appendf(nil, `[{"op":"add","path":%q,"value":%q}]`, path, h.authority), metav1.PatchOptions{FieldManager: "cloneset-manager"})
		require.NoError(h.t, err)
	}
}

func (h helm) assertAuthority(when string) {
	h.t.Helper()
	for name, of := range trusted() {
		found, err := h.get(of, "", name)
		require.NoError(h.t, err)
		text, err := found.MarshalJSON()
		require.NoError(h.t, err)
		assert.Contains(h.t, string(text), `"caBundle":"`+h.authority+`"`, "%s %s", name, when)
	}
}

func (h helm) assertSet(when string) {
	h.t.Helper()
	_, err := h.get(resource("apps.kruise.io", "v1beta1", "clonesets"), "default", "web")
	assert.NoError(h.t, err, when)
}

const (
	timeout = 5 * time.Minute
	pause   = 50 * time.Millisecond
)

const cloneset = `{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"web"},"spec":{"replicas":1,
"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"app"}]}}}}`

// One life of a feature that Helm installs: there are no nodes, so that the test plays the manager.
func TestHelmInstallsUpgradesRollsBackAndLeaves(t *testing.T) {
	clitest.NeedsServer(t)
	h := helm{t, clitest.Objects(t), newAuthority(t)}
	const given = "registry: registry.example.com/team"
	flotilla := func(args ...string) (string, cli.Code) {
		return clitest.Commands{install.NewCommand, install.NewUninstallCommand}.Call(t, clitest.Administrator, args...)
	}

	namespaces := h.cluster.Resource(resource("", "v1", "namespaces"))
	space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": catalog.Namespace}}}
	_, err := namespaces.Create(t.Context(), space, metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, h.install(charts.Base, ""), "namespace flotilla-system lacks label app.kubernetes.io/part-of=flotilla: "+
		"kubectl label namespace flotilla-system --overwrite app.kubernetes.io/part-of=flotilla pod-security.kubernetes.io/enforce=privileged")
	_, err = namespaces.Patch(t.Context(), catalog.Namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app.kubernetes.io/part-of":"flotilla","pod-security.kubernetes.io/enforce":"privileged"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, h.install(charts.Base, ""))

	require.ErrorContains(t, h.install("cloneset", given), "CRD clonesets.apps.kruise.io not found: install chart cloneset-crds first")
	require.NoError(t, h.install("cloneset-crds", ""))
	awaitServed(t, h)
	set := &unstructured.Unstructured{}
	require.NoError(t, set.UnmarshalJSON([]byte(cloneset)))
	_, err = h.cluster.Resource(resource("apps.kruise.io", "v1beta1", "clonesets")).Namespace("default").Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, h.install("cloneset", given))
	h.writeAuthority()

	h.upgrade("cloneset", given+"\ncomponents: [highavailability]")
	h.upgrade("cloneset-crds", "components: [certmanager]")
	assert.EqualValues(t, 2, h.replicas())
	h.assertAuthority("after an upgrade")
	h.rollback("cloneset", 1)
	h.rollback("cloneset-crds", 1)
	assert.EqualValues(t, 1, h.replicas())
	h.assertAuthority("after a rollback")
	h.assertSet("after a rollback")

	output, code := flotilla("install", "cloneset", "--wait=false", "--registry", registry)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "cloneset is managed by Helm: CustomResourceDefinition clonesets.apps.kruise.io is part of release cloneset-crds in namespace flotilla-system")
	h.uninstall("cloneset-crds")
	output, code = flotilla("install", "cloneset", "--wait=false", "--registry", registry)
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "cloneset is managed by Helm: Deployment flotilla-system/cloneset-manager is part of release cloneset in namespace flotilla-system")
	h.uninstall("cloneset")
	_, err = h.get(resource("apps", "v1", "deployments"), catalog.Namespace, "cloneset-manager")
	assert.True(t, apierrors.IsNotFound(err))
	h.assertSet("after the operator")

	output, code = flotilla("install", "cloneset", "--wait=false", "--registry", registry)
	require.Equal(t, cli.Done, code, output)
	h.writeAuthority()
	for _, name := range []string{"cloneset-crds", "cloneset"} {
		require.ErrorContains(t, h.install(name, map[string]string{"cloneset": given}[name]), `current value is "flotilla"`)
		require.NoError(t, h.install(name, map[string]string{"cloneset": given}[name], func(i *action.Install) {
			i.TakeOwnership, i.ForceConflicts, i.Replace = true, true, true
		}))
	}
	h.assertAuthority("after Helm has taken the objects over")
	output, code = flotilla("uninstall", "cloneset")
	assert.Equal(t, cli.Failed, code)
	assert.Contains(t, output, "cloneset is managed by Helm: ")
	h.uninstall("cloneset")
	h.assertSet("at the end")
}

// awaitServed waits until the server serves the kind.
func awaitServed(t *testing.T, h helm) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := h.cluster.Resource(resource("apps.kruise.io", "v1beta1", "clonesets")).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, timeout, pause)
}
