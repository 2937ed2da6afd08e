package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnknownNamesAreRefused(t *testing.T) {
	require.EqualError(t, run(t.Context(), []string{"inject"}, io.Discard), "\"inject\": the command is `publish`")
	assert.ErrorContains(t, run(t.Context(), []string{"--fault", "ectd"}, io.Discard), `there is no fault "ectd"`)
}
