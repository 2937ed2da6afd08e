package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReferencesAndDigestsArePrinted(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"--output", t.TempDir(), "--apps", "v1"}, &out))
	assert.Regexp(t, `^flotilla/demo-app:v1@sha256:[0-9a-f]{64}
flotilla/demo-app:v1-alias@sha256:[0-9a-f]{64}
flotilla/demo-app:crash@sha256:[0-9a-f]{64}
$`, out.String())
}

func TestMistakesAreReported(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), nil, &bytes.Buffer{}), "neither a registry nor an output folder")
	assert.Error(t, run(t.Context(), []string{"--unknown"}, &bytes.Buffer{}))
}
