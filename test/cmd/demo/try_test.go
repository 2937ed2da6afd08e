package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever has seen a demo is told three things to try with the command, and how to build it.
func TestThreeThingsToTry(t *testing.T) {
	for _, kind := range []string{"", "cloneset", "statefulset.apps.kruise.io"} {
		lines := withCommand(kind)
		require.Len(t, lines, 4, kind)
		assert.Contains(t, lines[0], "go build -C kustomize ")
		for _, line := range lines[1:] {
			assert.True(t, strings.HasPrefix(line, "bin/flotilla "), line)
			assert.Contains(t, line, " # ")
			assert.Equal(t, kind != "", strings.Contains(line, " -n demo "), line)
		}
	}
}
