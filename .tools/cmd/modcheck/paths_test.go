package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPathFaults(t *testing.T) {
	root := repository(map[string]string{
		"web/plan/plan_test.go": "package plan\nvar in, out, other = \"../config/crd\", \"../../docs/web.md\", \"..\"\n",
	})
	workspace, err := Load(root)
	require.NoError(t, err)
	faults, err := PathFaults(root, workspace.Modules[1])
	require.NoError(t, err)
	assert.Equal(t, []string{"web/plan/plan_test.go:2:39: leads out of the module, to docs/web.md"}, faults)
}
