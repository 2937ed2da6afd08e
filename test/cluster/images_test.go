package cluster

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSameProgramMakesSameImage(t *testing.T) {
	digest := func(content string) string {
		program := filepath.Join(t.TempDir(), "pause")
		require.NoError(t, os.WriteFile(program, []byte(content), 0o755))
		image, err := staticImage(program)
		require.NoError(t, err)
		digest, err := image.Digest()
		require.NoError(t, err)
		return digest.String()
	}
	first := digest("a")
	assert.Equal(t, first, digest("a"))
	assert.NotEqual(t, first, digest("b"))
}

func TestBuildsPauseOnceAndAsStaticProgram(t *testing.T) {
	b := builder{root: t.TempDir(), out: io.Discard}
	require.NoError(t, b.run(t.Context(), []recipe{pauseRecipe()}))
	program := filepath.Join(b.root, pauseRecipe().folder, "pause")
	before, err := os.Stat(program)
	require.NoError(t, err)
	require.NoError(t, b.run(t.Context(), []recipe{pauseRecipe()}))
	after, err := os.Stat(program)
	require.NoError(t, err)
	assert.Equal(t, before.ModTime(), after.ModTime(), "built a second time")
	entries, err := os.ReadDir(b.root)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "the build module is gone")
}

func TestBuildFailureTellsTheReason(t *testing.T) {
	r := pauseRecipe()
	r.source = []byte("package main\n\nfunc main() { nonsense() }\n")
	err := builder{root: t.TempDir(), out: io.Discard}.run(t.Context(), []recipe{r})
	assert.ErrorContains(t, err, "undefined: nonsense")
}

func TestSeccompProfileIsDroppedAndNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	for given, want := range map[string]string{
		`{"linux":{"seccomp":{"x":1},"y":2},"z":3}`: `{"linux":{"y":2},"z":3}`,
		`{"linux":{"y":2},"z":3}`:                   `{"linux":{"y":2},"z":3}`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(given), 0o600))
		require.NoError(t, dropSeccomp(path))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got))
	}
}
