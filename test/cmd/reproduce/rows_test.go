package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// A patch that no longer applies takes no fix out: make it again for the current code.
func TestPatchesApply(t *testing.T) {
	all, err := readRows(root)
	require.NoError(t, err)
	patches := map[string]bool{}
	for _, r := range all {
		patch, err := filepath.Abs(filepath.Join("testdata", r.Name+".patch"))
		require.NoError(t, err)
		assert.False(t, patches[patch], "two rows are called %s", r.Name)
		patches[patch] = true
		folder, err := filepath.Abs(root)
		require.NoError(t, err)
		assert.NoError(t, apply(t.Context(), folder, patch, "--check"), r.Name)
		text, err := os.ReadFile(patch)
		require.NoError(t, err)
		assert.NotEmpty(t, changed(string(text)), r.Name)
		for _, name := range changed(string(text)) {
			assert.True(t, strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"), "row %s changes %s: a fix is Go code that is built", r.Name, name)
		}
	}
	found, err := filepath.Glob("testdata/*.patch")
	require.NoError(t, err)
	assert.Len(t, patches, len(found), "each patch belongs to a row")
}

func TestRowsNameTests(t *testing.T) {
	all, err := readRows(root)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	for _, r := range all {
		file, name, _ := strings.Cut(r.Test, ":")
		tests, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err, r.Name)
		assert.Contains(t, string(tests), "\nfunc "+name+"(t *testing.T) {", r.Name)
		assert.Contains(t, string(text), "`"+r.Name+"`", "the page lists the names of the rows")
	}
}
