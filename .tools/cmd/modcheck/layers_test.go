package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLayerFaults(t *testing.T) {
	cases := []struct {
		name, file, content string
		want                []string
	}{
		{"down is fine", "core/pods/state/state.go", `package state; import "x/core/contract"`, nil},
		{"so is the same layer", "core/pods/state/state.go", `package state; import "x/core/pods/life"`, nil},
		{"others' packages are their business", "core/plan/action/a.go", `package action; import "k8s.io/api/core/v1"`, nil},
		{
			"up is not", "core/plan/action/a.go", `package action; import "x/core/pods/life"`,
			[]string{"core/plan/action/a.go: plan may not import pods/life"},
		},
		{
			"the process knows no workloads", "core/operator/manager/m.go", `package manager; import "x/core/workloads/revision"`,
			[]string{"core/operator/manager/m.go: operator may not import workloads/revision"},
		},
		{
			"what ships has nothing that is for tests", "core/frame/e.go", `package frame; import "x/core/testing/gen"`,
			[]string{"core/frame/e.go: frame may not import testing/gen"},
		},
		{"worlds play what ships", "core/simulation/rehearse/p.go", `package rehearse; import "x/core/frame"`, nil},
		{
			"worlds judge nothing", "core/simulation/cluster/w.go", `package cluster; import "x/core/testing/simulate"`,
			[]string{"core/simulation/cluster/w.go: simulation may not import testing/simulate"},
		},
		{
			"what is played knows no world", "core/frame/frame.go", `package frame; import "x/core/simulation/cluster"`,
			[]string{"core/frame/frame.go: frame may not import simulation/cluster"},
		},
		{"tests may have all", "core/plan/action/a_test.go", `package action; import "x/core/testing/gen"`, nil},
		{"internal has the same layers", "core/frame/e.go", `package frame; import "x/core/internal/frame/history"`, nil},
		{
			"up is not in internal either", "core/internal/controllers/freshness/f.go", `package freshness; import "x/core/internal/frame/history"`,
			[]string{"core/internal/controllers/freshness/f.go: controllers may not import internal/frame/history"},
		},
		{"no layer", "core/util/u.go", `package util`, []string{"core/util/u.go: is in no layer"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := repository(map[string]string{c.file: c.content})
			workspace, err := Load(files)
			require.NoError(t, err)
			faults, err := LayerFaults(files, workspace.Modules[0])
			require.NoError(t, err)
			assert.Equal(t, c.want, faults)
		})
	}
}

func TestAFileThatDoesNotParseIsNamed(t *testing.T) {
	files := repository(map[string]string{"core/plan/action/a.go": "no package"})
	workspace, err := Load(files)
	require.NoError(t, err)
	_, err = LayerFaults(files, workspace.Modules[0])
	require.ErrorContains(t, err, "parse core/plan/action/a.go")
	_, err = LayerFaults(fstest.MapFS{}, workspace.Modules[0])
	require.Error(t, err)
}
