package agent_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/operator/features"
	"github.com/flotilla-project/flotilla/core/testing/await"

	"github.com/flotilla-project/flotilla/daemon/config"
	"github.com/flotilla-project/flotilla/daemon/internal/agent"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

// TestAnAgentWaitsForDefinitions talks to a server that knows discovery only: a real one that loses its
// definitions would take those of the other tests along.
func TestAnAgentWaitsForDefinitions(t *testing.T) {
	var served atomic.Pointer[[]metav1.APIResource]
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		resources := served.Load()
		if request.URL.Path != "/apis/apps.kruise.io/v1beta1" || resources == nil {
			http.NotFound(answer, request)
			return
		}
		answer.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(answer).Encode(metav1.APIResourceList{GroupVersion: "apps.kruise.io/v1beta1", APIResources: *resources}))
	}))
	defer server.Close()

	n := &node{t: t, folder: simulate.Folder(t), options: agent.Options{
		Node: "node-1", Addr: freeAddress(t), Random: rand.Float64, FeatureGates: features.Defaults(featuregates.All()...), Log: logr.Discard(),
	}}
	n.options.SocketRoot = n.folder
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, n.options, &rest.Config{Host: server.URL}) }()

	eventuallySays := func(want string) {
		t.Helper()
		await.Until(t, func(c *assert.CollectT) {
			code, body := n.get("/readyz")
			assert.Equal(c, http.StatusInternalServerError, code)
			assert.Contains(c, body, want)
		})
	}
	eventuallySays("check definitions failed, err: CRD nodeimages.apps.kruise.io (not installed), CRD containerrecreaterequests.apps.kruise.io (not installed)")
	served.Store(&[]metav1.APIResource{{Name: "nodeimages"}})
	eventuallySays("check definitions failed, err: CRD containerrecreaterequests.apps.kruise.io (not installed)")
	code, _ := n.get("/healthz")
	assert.Equal(t, http.StatusOK, code)
	cancel()
	require.NoError(t, <-ended)
}

func TestAPortThatIsTakenEndsTheAgent(t *testing.T) {
	n := givenNode(t)
	n.eventuallyReady()
	options := n.options
	assert.ErrorContains(t, agent.Run(t.Context(), options, env.ConfigAs(t, "administrator")), "listen on "+options.Addr)
}

func TestABrokenPluginConfigurationEndsTheAgent(t *testing.T) {
	n := givenNodeWithoutAgent(t)
	n.options.PluginConfigFile = filepath.Join(n.folder, "plugins.yaml")
	require.NoError(t, os.WriteFile(n.options.PluginConfigFile, []byte("providers: 5"), 0o600))
	assert.ErrorContains(t, agent.Run(t.Context(), n.options, env.ConfigAs(t, "administrator")), "read plugin configuration "+n.options.PluginConfigFile)
}

func TestProfilesAreServedOnlyWhereAskedFor(t *testing.T) {
	n := givenNode(t, func(o *agent.Options) { o.EnablePprof, o.PprofAddr = true, freeAddress(t) })
	n.eventuallyReady()
	code, _ := n.get("/debug/pprof/")
	assert.Equal(t, http.StatusNotFound, code)
	n.options.Addr = n.options.PprofAddr
	code, _ = n.get("/debug/pprof/cmdline")
	assert.Equal(t, http.StatusOK, code)
}

// Metrics tell what runs on a node. Probes come from the kubelet, which shows no token.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	n := givenNode(t, func(o *agent.Options) { o.MetricsSecure = true })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as the kubelet does
	get := func(path, token string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+n.options.Addr+path, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", token)
		response, err := client.Do(request)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, string(body)
	}
	await.Until(t, func(c *assert.CollectT) {
		code, body := get("/readyz", "")
		assert.Equal(c, http.StatusOK, code, body)
	})
	code, page := get("/metrics", "")
	assert.Equal(t, http.StatusUnauthorized, code)
	assert.NotContains(t, page, "kruise_agent")

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: "reader"}}
	require.NoError(t, n.client.Create(t.Context(), account))
	request := &authenticationv1.TokenRequest{}
	require.NoError(t, n.client.SubResource("token").Create(t.Context(), account, request))
	token := "Bearer " + request.Status.Token
	code, page = get("/metrics", token)
	assert.Equal(t, http.StatusForbidden, code, page)

	env.Install(t, config.Files, "rbac/metrics_role.yaml")
	other := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: "prometheus"}}
	require.NoError(t, n.client.Create(t.Context(), other))
	require.NoError(t, n.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: n.name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "daemon-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: n.name, Name: other.Name}},
	}))
	request = &authenticationv1.TokenRequest{}
	require.NoError(t, n.client.SubResource("token").Create(t.Context(), other, request))
	await.Until(t, func(c *assert.CollectT) { // the server takes a moment to notice the binding
		code, page := get("/metrics", "Bearer "+request.Status.Token)
		assert.Equal(c, http.StatusOK, code, page)
		assert.Contains(c, page, "kruise_agent_runtime_ready 1")
		assert.Contains(c, page, `controller_runtime_reconcile_panics_total{controller="containerrestart"}`)
		assert.Contains(c, page, "go_goroutines")
	})
}
