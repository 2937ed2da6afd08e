package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flotilla-project/flotilla/core/testing/testenv"
)

var env testenv.Environment

func TestMain(m *testing.M) { env.Run(m, testenv.Options{}) }

// kubeconfig writes the kubeconfig of the server for the command.
func kubeconfig(t *testing.T, c *rest.Config) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	config.AuthInfos["u"] = &api.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

func TestBenchPrintsFiguresAndLeavesNoNodes(t *testing.T) {
	env.Need(t)
	var out bytes.Buffer
	file := kubeconfig(t, env.Config)
	require.NoError(t, run(t.Context(), []string{"--kubeconfig", file, "--bench", "20", "--nodes", "2"}, &out))
	assert.Regexp(t, `^20 pods: \d+/s created, \d+/s to ready, \d+/s removed\n$`, out.String())
	var nodes corev1.NodeList
	require.NoError(t, env.Client(t).List(t.Context(), &nodes))
	assert.Empty(t, nodes.Items)
}

// announced ends the command when it has printed its first line.
type announced struct {
	bytes.Buffer
	stop context.CancelFunc
}

func (a *announced) Write(p []byte) (int, error) {
	defer a.stop()
	return a.Buffer.Write(p)
}

func TestCommandServesUntilItIsInterrupted(t *testing.T) {
	env.Need(t)
	ctx, stop := context.WithCancel(t.Context())
	out := &announced{stop: stop}
	file := kubeconfig(t, env.Config)
	require.NoError(t, run(ctx, []string{"--kubeconfig", file, "--nodes", "2", "--prefix", "few-", "--crash", "a:b", "--same-image", "c=d"}, out))
	assert.Contains(t, out.String(), "2 simulated nodes are ready\n")
	assert.Contains(t, out.String(), "Reports:0")
}

func TestMistakesAreReported(t *testing.T) {
	require.Error(t, run(t.Context(), []string{"--unknown"}, &bytes.Buffer{}))
	assert.ErrorContains(t, run(t.Context(), []string{"--kubeconfig", filepath.Join(t.TempDir(), "absent")}, &bytes.Buffer{}), "load kubeconfig")
}
