package agent_test

import (
	"context"
	"encoding/json"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flotilla-project/flotilla/core/features"

	"github.com/flotilla-project/flotilla/daemon/internal/agent"
	"github.com/flotilla-project/flotilla/daemon/internal/agent/simulate"
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
		Node: "node-1", Addr: freeAddress(t), Random: rand.Float64, Gates: features.Defaults(), Log: logr.Discard(),
	}}
	n.options.SocketRoot = n.folder
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, n.options, &rest.Config{Host: server.URL}) }()

	eventuallySays := func(want string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			code, body := n.get("/readyz")
			assert.Equal(c, http.StatusInternalServerError, code)
			assert.Contains(c, body, want)
		}, patience, moment)
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
