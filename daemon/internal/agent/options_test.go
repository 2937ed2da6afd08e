package agent_test

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flotilla-project/flotilla/daemon/internal/agent"
	"github.com/flotilla-project/flotilla/daemon/internal/featuregates"
)

func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestOptionsHaveOpenKruisesNamesAndSafeDefaults(t *testing.T) {
	o, err := agent.ReadOptions(nil, environment(map[string]string{"NODE_NAME": "node-1"}))
	require.NoError(t, err)
	assert.Equal(t, "node-1", o.Node)
	assert.Equal(t, []any{":10221", true, false, "localhost:10222"}, []any{o.Addr, o.MetricsSecure, o.EnablePprof, o.PprofAddr})
	assert.Equal(t, []any{"/hostvarrun", "", -1}, []any{o.SocketRoot, o.SocketFile, o.MaxWorkersForPullImage})
	assert.Equal(t, []any{"/kruise/CredentialProviderPlugin.yaml", "/kruise/plugins"}, []any{o.PluginConfigFile, o.PluginBinDir})
	assert.Equal(t, "kruise-daemon-config", o.ConfigNamespace)
	assert.True(t, o.FeatureGates.Enabled(featuregates.DaemonWatchingPod))

	o, err = agent.ReadOptions([]string{
		"--addr=:1", "--enable-pprof", "--pprof-addr=:2", "--socket-file=k3s/containerd.sock", "--plugin-config-file=/a", "--plugin-bin-dir=/b",
		"--max-workers-for-pull-image=2", "--rest-config-qps=3", "--rest-config-burst=4", "--feature-gates=DaemonWatchingPod=false,WorkloadSpread=false",
	}, environment(map[string]string{"NODE_NAME": "node-1", "HOST_IP": "10.0.0.1", "KRUISE_DAEMON_CONFIG_NS": "pull"}))
	require.NoError(t, err)
	assert.Equal(t, []any{":1", true, ":2", "k3s/containerd.sock", "/a", "/b", 2, float32(3), 4},
		[]any{o.Addr, o.EnablePprof, o.PprofAddr, o.SocketFile, o.PluginConfigFile, o.PluginBinDir, o.MaxWorkersForPullImage, o.QPS, o.Burst})
	assert.Equal(t, []any{"10.0.0.1", "pull"}, []any{o.HostIP, o.ConfigNamespace})
	assert.False(t, o.FeatureGates.Enabled(featuregates.DaemonWatchingPod))
	assert.Equal(t, []string{"feature gate WorkloadSpread is not used by this operator and is ignored"}, o.Notes)
}

func TestTheLogHasTheVerbosityOfKlog(t *testing.T) {
	for _, argument := range []string{"--v=4", "-v=4"} {
		o, err := agent.ReadOptions([]string{argument}, environment(map[string]string{"NODE_NAME": "node-1"}))
		require.NoError(t, err, argument)
		assert.True(t, o.Log.V(4).Enabled(), argument)
		assert.False(t, o.Log.V(5).Enabled(), argument)
	}
}

func TestSettingsThatMakeNoSenseAreErrors(t *testing.T) {
	_, err := agent.ReadOptions(nil, environment(nil))
	require.EqualError(t, err, "not found NODE_NAME in environments")
	_, err = agent.ReadOptions([]string{"--feature-gates=Nonsense=true"}, environment(map[string]string{"NODE_NAME": "n"}))
	require.ErrorContains(t, err, "Nonsense")
	_, err = agent.ReadOptions([]string{"--socket"}, environment(map[string]string{"NODE_NAME": "n"}))
	require.Error(t, err)
	_, err = agent.ReadOptions([]string{"--help"}, environment(nil))
	require.ErrorIs(t, err, pflag.ErrHelp)
}
