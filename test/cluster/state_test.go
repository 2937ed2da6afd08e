package cluster

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStateSurvivesTheFile(t *testing.T) {
	s := exampleState()
	s.Folder = t.TempDir()
	s.Machines = []machine{{Name: controlPlaneName, Index: -1}, exampleParts().machine(0)}
	require.NoError(t, s.write())
	read, err := readState(s.layout())
	require.NoError(t, err)
	assert.Equal(t, s, read)

	node, err := read.node("n0")
	require.NoError(t, err)
	assert.Equal(t, "/flotilla-example/n0", node.Cgroup)
	_, err = read.node(controlPlaneName)
	assert.Error(t, err, "the control plane is no node")
}

func TestNoStateMeansNotRunning(t *testing.T) {
	_, err := readState(layout(t.TempDir()))
	require.ErrorIs(t, err, ErrNotRunning)
	_, err = Attach(t.Context(), Options{Cache: t.TempDir()})
	require.ErrorIs(t, err, ErrNotRunning)
	assert.ErrorIs(t, Remove(t.Context(), Options{Cache: t.TempDir()}), ErrNotRunning)
}

func TestStateWithoutSupervisorMeansNotRunning(t *testing.T) {
	cache := t.TempDir()
	s := exampleState()
	s.Folder = string(layoutOf(cache, s.Name))
	require.NoError(t, writeFiles(map[string][]byte{filepath.Join(s.Folder, "x"): nil}))
	require.NoError(t, s.write())
	_, err := Attach(t.Context(), Options{Name: s.Name, Cache: cache})
	require.ErrorIs(t, err, ErrNotRunning)
}

func TestOptionsAreCompletedOrRefused(t *testing.T) {
	for name, c := range map[string]struct {
		given   Options
		refused string
	}{
		"nothing asked for":     {given: Options{}},
		"no nodes":              {given: Options{Nodes: NoNodes}},
		"many simulated nodes":  {given: Options{Nodes: 5000, Simulated: true}},
		"many real nodes":       {given: Options{Nodes: 5000}, refused: "5000 nodes"},
		"negative nodes":        {given: Options{Nodes: -2}, refused: "-2 nodes"},
		"a name with a slash":   {given: Options{Name: "a/b"}, refused: "cluster name"},
		"a name that is a path": {given: Options{Name: ".."}, refused: "cluster name"},
		"a name too long":       {given: Options{Name: "abcdefghijklmnopqrstu"}, refused: "cluster name"},
	} {
		t.Run(name, func(t *testing.T) {
			completed, err := c.given.complete()
			if c.refused != "" {
				assert.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, DefaultName, completed.Name)
			assert.Equal(t, DefaultKubernetes, completed.Kubernetes)
			assert.True(t, filepath.IsAbs(completed.Cache))
		})
	}
}

func TestCacheFolderCanBeMoved(t *testing.T) {
	t.Setenv(CacheVariable, "/from/environment")
	folder, err := CacheFolder("")
	require.NoError(t, err)
	assert.Equal(t, "/from/environment", folder)
	folder, err = CacheFolder("/given")
	require.NoError(t, err)
	assert.Equal(t, "/given", folder)
}

func TestRunningClusterMustBeTheOneAskedFor(t *testing.T) {
	running := &Cluster{state: exampleState()}
	require.NoError(t, running.matches(Options{}), "anything will do")
	require.NoError(t, running.matches(Options{Nodes: 2, Kubernetes: "1.37.2"}))
	require.ErrorContains(t, running.matches(Options{Nodes: 3}), "2 nodes")
	require.ErrorContains(t, running.matches(Options{Nodes: NoNodes}), "2 nodes")
	require.ErrorContains(t, running.matches(Options{Kubernetes: "1.35.0"}), "1.37.2")
	assert.Error(t, running.matches(Options{Simulated: true}))
}

func TestProcessesAreFoundByName(t *testing.T) {
	s := exampleState()
	s.Machines = []machine{{Name: controlPlaneName, Processes: []Process{{Name: "etcd"}}}, exampleParts().machine(0)}
	m, p, err := s.process("n0-kubelet")
	require.NoError(t, err)
	assert.Equal(t, "n0", m.Name)
	assert.Equal(t, "kubelet", filepath.Base(p.Path))
	_, _, err = s.process("n1-kubelet")
	assert.EqualError(t, err, `cluster example has no process "n1-kubelet"`)
}
