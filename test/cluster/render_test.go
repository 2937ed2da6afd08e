package cluster

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write golden files")

func assertGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	assert.Equal(t, string(want), string(got))
}

func exampleState() state {
	return state{
		Name: "example", Kubernetes: "1.37.2", Nodes: 2, Folder: "/state", Binaries: "/bin/kubernetes",
		Containerd: "/bin/containerd", APIPort: 7443, RegistryPort: 7500,
	}
}

func exampleParts() nodeParts {
	return nodeParts{
		state:       exampleState(),
		binaries:    Binaries{Kubernetes: "/bin/kubernetes", containerd: "/bin/containerd", cni: "/bin/cni"},
		runc:        runtimeChoice{path: "/usr/sbin/runc"},
		snapshotter: "overlayfs",
	}
}

func TestNodeConfigurationIsRenderedAsRecorded(t *testing.T) {
	files, err := exampleParts().files(1)
	require.NoError(t, err)
	var all bytes.Buffer
	for _, name := range []string{"kubelet.yaml", "containerd.toml", "cni/10-bridge.conflist", "registries/_default/hosts.toml", "resolv.conf"} {
		path := filepath.Join("/state/n1/config", name)
		require.Contains(t, files, path)
		all.WriteString("==> " + path + "\n")
		all.Write(files[path])
	}
	assert.Len(t, files, 5)
	assertGolden(t, "testdata/node.golden", all.Bytes())
	var kubelet map[string]any
	require.NoError(t, yaml.UnmarshalStrict(files["/state/n1/config/kubelet.yaml"], &kubelet))
}

func TestControlPlaneProcessesAreAsRecorded(t *testing.T) {
	var all strings.Builder
	for _, p := range (controlPlane{state: exampleState(), endpoints: realEndpoints()}).machine().Processes {
		all.WriteString(p.Name + " = " + p.Path + "\n")
		for _, arg := range p.Args {
			all.WriteString("    " + arg + "\n")
		}
	}
	assertGolden(t, "testdata/controlplane.golden", []byte(all.String()))
}

func TestSimulatedControlPlaneListensOnLoopbackOnly(t *testing.T) {
	s := exampleState()
	s.Simulated = true
	ends := endpoints{etcd: loopback(1), etcdPeer: loopback(2), apiBind: "127.0.0.1", apiAdvertise: controlPlaneAddress, apiPort: 3}
	listening := []string{"--bind-address=127.0.0.1", "--listen-client-urls=http://127.0.0.1:1",
		"--listen-peer-urls=http://127.0.0.1:2"}
	var args []string
	for _, p := range (controlPlane{state: s, endpoints: ends}).processes() {
		args = append(args, p.Args...)
	}
	for _, arg := range listening {
		assert.Contains(t, args, arg)
	}
	assert.NotContains(t, strings.Join(args, " "), "0.0.0.0")
	assert.Equal(t, 2, strings.Count(strings.Join(args, " "), "--secure-port=0"), "controller manager and scheduler serve nothing")
}
